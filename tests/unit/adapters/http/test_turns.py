"""Slices of long work take turns: counted by what else the loop did in between."""

import asyncio

import pytest

from rgd.adapters.http.errors import Overloaded
from rgd.adapters.http.turns import ReadTurns, Turns


async def test_one_slice_for_each_turn_of_the_loop_however_many_work() -> None:
    turns, done = Turns(), [0] * 5
    loop_turns = 0

    async def work(number: int) -> None:
        for _ in range(20):
            await turns.next()
            done[number] += 1

    async def count() -> None:
        nonlocal loop_turns
        while sum(done) < 100:
            before = sum(done)
            await asyncio.sleep(0)
            loop_turns += 1
            assert sum(done) - before <= 1

    async with asyncio.TaskGroup() as tasks:
        for number in range(5):
            tasks.create_task(work(number))
        tasks.create_task(count())

    assert loop_turns >= 100
    assert turns.given == 100


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


async def test_a_turn_that_nobody_waits_for_any_more_is_passed_on() -> None:
    turns = Turns()
    gone = asyncio.ensure_future(turns.next())
    there = asyncio.ensure_future(turns.next())
    await asyncio.sleep(0)

    gone.cancel()

    async with asyncio.timeout(60):
        await there


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


async def test_each_read_begins_with_a_turn_of_its_own() -> None:
    turns, order = ReadTurns(), list[int]()

    async def read(number: int) -> None:
        async with turns.taken():
            order.append(turns.given)

    await asyncio.gather(*map(read, range(4)))
    assert order == [1, 2, 3, 4]


async def test_the_largest_slice_is_noted() -> None:
    turns = Turns()
    for work in (3, 7, 5):
        await turns.next(work)
    assert turns.largest == 7


async def _let_run() -> None:
    """Turns of the loop: more than any of these needs."""
    for _ in range(20):
        await asyncio.sleep(0)
