"""Who comes before our next change of a policy, and for how long."""

import asyncio

from rgd.app.policies.turns import OWED_MAX, Turns
from tests.support.policy_tables import TIMEOUT_S

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
    turns = Turns(turn_s=TIMEOUT_S)
    turns.note_loss(GOLD, "b")
    turns.note_loss(GOLD, "c")
    assert not is_held_up(turns, "group:silver")
    waiting = asyncio.create_task(turns.wait(GOLD))
    await asyncio.sleep(0)
    turns.note_win(GOLD, "b")
    turns.note_win("group:silver", "c")
    await asyncio.sleep(0)
    assert not waiting.done()
    turns.note_win(GOLD, "c")
    await waiting
    assert not is_held_up(turns)


async def test_daemons_that_are_gone_hold_nobody_up_for_ever() -> None:
    turns = Turns(turn_s=0.001)
    for writer in ("gone", "never-there"):
        turns.note_loss(GOLD, writer)
    await turns.wait(GOLD)
    assert not is_held_up(turns)


async def test_one_that_loses_again_while_it_is_waited_for_does_not_prolong_it() -> None:
    turns = Turns(turn_s=0.001)
    turns.note_loss(GOLD, "b")
    waiting = asyncio.create_task(turns.wait(GOLD))
    while not waiting.done():
        turns.note_loss(GOLD, "b")
        await asyncio.sleep(0)


async def test_more_are_not_waited_for_than_the_limit_allows() -> None:
    turns = Turns(turn_s=TIMEOUT_S)
    for number in range(2 * OWED_MAX):
        turns.note_loss(GOLD, f"writer-{number}")
    turns.note_loss("group:late", "b")
    assert not is_held_up(turns, "group:late")
    for number in range(OWED_MAX):
        assert is_held_up(turns)
        turns.note_win(GOLD, f"writer-{number}")
    assert not is_held_up(turns)
    turns.note_loss("group:late", "b")
    assert is_held_up(turns, "group:late")


async def test_what_ended_by_itself_makes_room() -> None:
    turns = Turns(turn_s=0)
    for number in range(OWED_MAX):
        turns.note_loss(f"group:{number}", "b")
    turns.note_loss(GOLD, "b")
    assert is_held_up(turns)
