"""Threads for calls that may hang: one holds up its own thread, for a limited time, and nothing else."""

import asyncio
import threading

import pytest

from rgd.app.call_threads import CallThread, CallThreadBusy, CallThreadClosed

TIMEOUT_S = 30


class Hanging:
    """A call that ends when the test says so."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.end = threading.Event()
        self.thread = threading.main_thread()

    def __call__(self) -> str:
        self.thread = threading.current_thread()
        self.begun.set()
        assert self.end.wait(TIMEOUT_S)
        return "ended"


def call_thread(*, timeout_s: float = TIMEOUT_S, waiting_max: int = 4) -> CallThread:
    return CallThread("reads", timeout_s=timeout_s, waiting_max=waiting_max)


async def hangs(one: CallThread, hanging: Hanging) -> None:
    """Call what hangs until the thread has begun it: it may begin later than anybody waits here."""
    while not hanging.begun.is_set():
        with pytest.raises(CallThreadBusy, match="expected an answer"):
            await one.call(hanging)


async def begun(one: CallThread, hanging: Hanging) -> "asyncio.Task[str]":
    task = asyncio.create_task(one.call(hanging))
    assert await asyncio.to_thread(hanging.begun.wait, TIMEOUT_S)
    return task


async def test_who_waits_for_what_hangs_is_told_and_the_thread_goes_on_after_it() -> None:
    one, hanging = call_thread(timeout_s=0.01), Hanging()
    await hangs(one, hanging)
    never = Hanging()
    with pytest.raises(CallThreadBusy):
        await one.call(never)
    hanging.end.set()
    one._timeout_s = TIMEOUT_S
    assert await one.call(lambda: "next") == "next"
    # Nobody waited for it any more, so it was not begun.
    assert not never.begun.is_set()
    one.close()


async def test_a_thread_that_hangs_queues_no_more_than_it_may() -> None:
    one, hanging = call_thread(timeout_s=0.01, waiting_max=3), Hanging()
    await hangs(one, hanging)
    for _ in range(2):
        with pytest.raises(CallThreadBusy):
            await one.call(hanging)
    for _ in range(10):
        with pytest.raises(CallThreadBusy, match="3 wait already"):
            await one.call(hanging)
    hanging.end.set()
    one.close()


async def test_closing_tells_who_waits_and_waits_for_nothing() -> None:
    one, hanging = call_thread(), Hanging()
    task = await begun(one, hanging)
    one.close()
    with pytest.raises(CallThreadClosed):
        await task
    with pytest.raises(CallThreadClosed):
        await one.call(hanging)
    hanging.end.set()
    await asyncio.to_thread(hanging.thread.join, TIMEOUT_S)
    assert not hanging.thread.is_alive()
