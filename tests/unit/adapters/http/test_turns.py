"""Slices of long work take turns: counted by what else the loop did in between."""

import asyncio

from rgd.adapters.http.turns import Turns


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

    async with asyncio.timeout(5):
        await there
