"""Slices of long work take turns: counted by what else the loop did in between."""

import asyncio

import pytest

from rgd.adapters.http.errors import Overloaded
from rgd.adapters.http.turns import WAITING_MAX, ReadTurns, Turns


async def test_all_who_work_get_equal_parts() -> None:
    turns, order = Turns(), list[int]()

    async def work(number: int) -> None:
        for _ in range(4):
            await turns.next()
            order.append(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(3):
            tasks.create_task(work(number))

    assert order == [0, 1, 2] * 4


async def test_a_turn_is_one_callers_and_only_so_many_wait_for_theirs() -> None:
    turns = Turns()
    assert [turns.take(), turns.take()] == [True, False]
    waiting = [asyncio.ensure_future(turns.next()) for _ in range(WAITING_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded, match=f"{WAITING_MAX} arrays are in work"):
        turns.take()
    await asyncio.gather(*waiting)
    await _let_run()
    assert turns.take()


async def test_so_many_read_so_many_wait_and_the_next_comes_back() -> None:
    turns, go_on, at_work = ReadTurns(at_once=2, waiting=3), asyncio.Event(), 0

    async def read() -> None:
        nonlocal at_work
        async with turns.taken():
            at_work += 1
            await go_on.wait()
            at_work -= 1

    reads = [asyncio.ensure_future(read()) for _ in range(5)]
    await _let_run()
    assert at_work == 2
    with pytest.raises(Overloaded, match="2 reads are in work and 3 wait"):
        await read()
    # One that gives up makes room for another.
    reads.pop().cancel()
    await _let_run()
    reads.append(asyncio.ensure_future(read()))
    go_on.set()
    await asyncio.gather(*reads)
    assert at_work == 0
    await read()


async def _let_run() -> None:
    """Turns of the loop: more than any of these needs."""
    for _ in range(20):
        await asyncio.sleep(0)
