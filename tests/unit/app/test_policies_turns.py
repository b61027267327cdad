"""Who comes before our next change of a policy, and for how long."""

import asyncio

import pytest

from rgd.app.policies import turns as module
from rgd.app.policies.turns import OWED_MAX, Turns

GOLD = "group:gold"


def is_held_up(turns: Turns, key: str = GOLD) -> bool:
    """Whether a change of the key would wait now."""
    waiting = turns.wait(key)
    try:
        waiting.send(None)
    except StopIteration:
        return False
    waiting.close()
    return True


async def test_whoever_lost_comes_first_until_its_record_counts() -> None:
    turns = Turns()
    turns.note_loss(GOLD, "b")
    turns.note_loss(GOLD, "c")
    assert not is_held_up(turns, "group:silver")
    waiting = asyncio.create_task(turns.wait(GOLD))
    await asyncio.sleep(0)
    turns.note_win(GOLD, "b")
    await asyncio.sleep(0)
    assert not waiting.done()
    turns.note_win(GOLD, "c")
    await waiting
    assert not is_held_up(turns)


async def test_a_daemon_that_is_gone_holds_nobody_up_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TURN_S", 0.001)
    turns = Turns()
    turns.note_loss(GOLD, "gone")
    await turns.wait(GOLD)
    assert not is_held_up(turns)


async def test_more_are_not_waited_for_than_the_limits_allow() -> None:
    turns = Turns()
    for number in range(2 * OWED_MAX):
        turns.note_loss(GOLD, f"writer-{number}")
        turns.note_loss(f"group:{number}", "b")
    for number in range(OWED_MAX):
        turns.note_win(GOLD, f"writer-{number}")
    assert not is_held_up(turns)
    assert is_held_up(turns, f"group:{OWED_MAX - 2}")
    assert not is_held_up(turns, f"group:{OWED_MAX}")


async def test_what_ended_by_itself_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    monkeypatch.setattr(module, "TURN_S", -1.0)
    for number in range(OWED_MAX):
        turns.note_loss(f"group:{number}", "b")
    monkeypatch.setattr(module, "TURN_S", 60.0)
    turns.note_loss(GOLD, "b")
    assert is_held_up(turns)
