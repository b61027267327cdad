"""Who comes before our next change of a policy, and for how long."""

import asyncio

from rgd.app.policies.losers import OWED_MAX, Losers
from tests.support.policy_tables import TIMEOUT_S

GOLD = "group:gold"


def is_held_up(losers: Losers, key: str = GOLD) -> bool:
    """Whether a change of the key would wait now."""
    waiting = losers.wait(key)
    try:
        waiting.send(None)
    except StopIteration:
        return False
    waiting.close()
    return True


async def test_whoever_lost_comes_first_until_its_record_counts() -> None:
    losers = Losers(turn_s=TIMEOUT_S)
    losers.note_loss(GOLD, "b")
    losers.note_loss(GOLD, "c")
    assert not is_held_up(losers, "group:silver")
    waiting = asyncio.create_task(losers.wait(GOLD))
    await asyncio.sleep(0)
    losers.note_win(GOLD, "b")
    losers.note_win("group:silver", "c")
    await asyncio.sleep(0)
    assert not waiting.done()
    losers.note_win(GOLD, "c")
    await waiting
    assert not is_held_up(losers)


async def test_daemons_that_are_gone_hold_nobody_up_for_ever() -> None:
    losers = Losers(turn_s=0.001)
    for writer in ("gone", "never-there"):
        losers.note_loss(GOLD, writer)
    await losers.wait(GOLD)
    assert not is_held_up(losers)


async def test_what_ended_by_itself_makes_room() -> None:
    losers = Losers(turn_s=0)
    for number in range(OWED_MAX):
        losers.note_loss(f"group:{number}", "b")
    losers.note_loss(GOLD, "b")
    assert is_held_up(losers)
