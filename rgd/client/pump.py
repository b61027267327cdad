"""Runs a client's core on an event loop: sends its calls, tells it what came of them, wakes it in time.

Both forms of the client use it: the asyncio one on the caller's loop, the blocking one on a loop in a
thread, with a lock around the core. When it ends, however it ends, everybody who waits is answered.
"""

import asyncio
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress

from rgd.client.clock import now
from rgd.client.core import Call, ClientCore
from rgd.client.transport import NOTHING, Transport

#: What guards the core from other threads; nothing, where there are none.
Guard = AbstractContextManager[object]


class Pump:
    """One client's driver.

    Args:
        core: used by nobody else without `guard`.
        transport: open.
        guard: held while the core is used, never while anything is awaited.
    """

    def __init__(self, core: ClientCore, transport: Transport, guard: Guard) -> None:
        self._core = core
        self._transport = transport
        self._guard = guard
        self._is_closing = False
        self._awake = asyncio.Event()
        self._sending: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Something was asked; called on the loop."""
        self._awake.set()

    def close(self) -> None:
        """End: give back what is left; called on the loop."""
        self._is_closing = True
        self._awake.set()

    async def run(self) -> None:
        """Send until closed, then give back, within `close_timeout_s`."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while not self._is_closing:
                    self._awake.clear()
                    self._send_all(tasks)
                    await self._sleep()
                await self._give_back(tasks)
        finally:
            with self._guard:
                self._core.answer_all(now())

    async def _give_back(self, tasks: asyncio.TaskGroup) -> None:
        """Wait for the calls in progress, because what they bring goes back too; then give back."""
        with self._guard:
            self._core.answer_all(now())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._core.settings.close_timeout_s):
                await self._all_sent()
                # Again where the daemon took fewer at once than were sent.
                while last := self._last_calls():
                    self._begin(tasks, last)
                    await self._all_sent()
        for task in self._sending:
            task.cancel()

    def _last_calls(self) -> list[Call]:
        with self._guard:
            return self._core.give_back(now())

    async def _all_sent(self) -> None:
        while self._sending:
            await asyncio.wait(self._sending)

    def _send_all(self, tasks: asyncio.TaskGroup) -> None:
        with self._guard:
            moment = now()
            self._core.expire(moment)
            calls = self._core.calls(moment)
        self._begin(tasks, calls)

    def _begin(self, tasks: asyncio.TaskGroup, calls: Iterable[Call]) -> None:
        for call in calls:
            task = tasks.create_task(self._send(call))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _sleep(self) -> None:
        with self._guard:
            due = self._core.wake_at()
        pause_s = None if due is None else max(0.0, (due - now()) / 1e9)
        try:
            async with asyncio.timeout(pause_s):
                await self._awake.wait()
        except TimeoutError:
            return

    async def _send(self, call: Call) -> None:
        status, body = NOTHING
        try:
            status, body = await self._transport.call(call.path, call.body)
        finally:
            with self._guard:
                self._core.answered(call.id, status, body, now())
        self._awake.set()
