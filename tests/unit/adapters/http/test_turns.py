"""Slices of long work take turns: counted by what else the loop did in between."""

import asyncio

import pytest

from rgd.adapters.http.errors import Overloaded
from rgd.adapters.http.turns import WAITING_MAX, Turns


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


async def _let_run() -> None:
    """Turns of the loop: more than any of these needs."""
    for _ in range(20):
        await asyncio.sleep(0)
