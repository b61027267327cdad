"""One name, one daemon.

As one broker lives it. Not covered: two real cores that meet (tests/simulation/test_zombies.py), what
peers make of it (tests/unit/core/exchange/test_peers.py).
"""

from dataclasses import replace

import pytest

from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Halt, Publish
from rgd.core.broker.mode import Mode
from rgd.core.exchange.messages import Claim, Goodbye, Hello, Report, Sender
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import ME, Desk, Effects, codes, reports
from tests.unit.core.values import ms, rates, report, usage

LOWER, HIGHER = Sender("b1", 0), Sender("b1", 9)
CONFLICT = Alarm(AlarmCode.NAME_CONFLICT, "b1")


def said_by(
    other: Sender, claim: Claim = Claim.HELD, *, names: int = ME.incarnation, sequence: int = 1
) -> Report:
    """A report of another daemon under our name; it names our incarnation."""
    return replace(report("b1", sequence=sequence), sender=other, claim=claim, rival=names)


def halts(effects: Effects) -> list[str]:
    """Why it ends, if it does."""
    return [effect.reason for effect in effects if isinstance(effect, Halt)]


def goodbyes(effects: Effects) -> list[Goodbye]:
    said = [effect.message for effect in effects if isinstance(effect, Publish)]
    return [message for message in said if isinstance(message, Goodbye)]


def settled(live: Desk) -> Desk:
    """A broker that has held its name for some time."""
    live.share()
    live.run(2005, 5005)
    return live


def yielding(live: Desk) -> Desk:
    """One that yielded at 5100 and wanted the whole quota."""
    settled(live)
    assert AlarmCode.NAME_YIELDED in codes(live.hear(said_by(LOWER), 5100))
    return live


# The start.


def test_a_new_daemon_whose_name_has_an_owner_refuses_to_start(desk: Desk) -> None:
    desk.start()
    effects = desk.hear(said_by(HIGHER), 300)
    (reason,) = halts(effects)
    assert codes(effects) == [AlarmCode.NAME_CONFLICT]
    assert "'b1'" in reason
    assert "broker.name" in reason
    # Whoever took it for the owner looks further.
    assert [word.claim for word in reports(effects)] == [Claim.YIELDED]
    assert desk.broker.own_name.trouble is not None


@pytest.mark.parametrize(
    ("other", "claim", "goes"),
    [
        pytest.param(HIGHER, Claim.HELD, True, id="the-owner"),
        pytest.param(HIGHER, Claim.RETURNING, True, id="an-owner-that-was-away"),
        pytest.param(LOWER, Claim.STARTING, True, id="a-lower-one-that-starts-too"),
        pytest.param(HIGHER, Claim.STARTING, False, id="a-higher-one-that-starts-too"),
        pytest.param(LOWER, Claim.YIELDED, False, id="one-that-yielded"),
    ],
)
def test_whom_a_new_daemon_yields_to(desk: Desk, other: Sender, claim: Claim, goes: bool) -> None:
    desk.start()
    assert bool(halts(desk.hear(said_by(other, claim), 300))) is goes


# The owner.


def test_an_owner_that_receives_another_hello_reports_and_stays(live: Desk) -> None:
    settled(live)
    assert live.hear(Hello(HIGHER), 5200) == (CONFLICT,)
    (word,) = reports(live.wake(5200))
    assert (word.claim, word.rival) == (Claim.HELD, HIGHER.incarnation)
    assert live.believes() is Mode.LIVE
    # Said once, and every report names the other one until it has been silent for long.
    assert live.hear(Hello(HIGHER), 5250) == ()
    live.read_back(5260)
    live.run(5260, 5999)
    assert reports(live.wake(6000))[0].rival == HIGHER.incarnation


def test_whoever_floods_us_with_hellos_in_our_name_gets_one_word_an_interval(live: Desk) -> None:
    settled(live)
    live.said.clear()
    for at in range(5100, 6100, 10):
        live.hear(Hello(Sender("b1", 100 + at)), at)
        live.wake(at)
    words = [message for message in live.said if isinstance(message, Report)]
    assert len(words) <= 1000 / 100 + 2
    assert not any(word.full for word in words)
    assert live.believes() is Mode.LIVE


# Yielding.


def test_the_other_one_gone_in_silence_the_name_is_taken_back(live: Desk) -> None:
    yielding(live)
    live.run(5100, 8199)
    assert live.believes() is Mode.YIELDING
    live.run(8199, 8201)
    assert live.believes() is Mode.REJOINING
    live.run(8201, 11_000)
    assert live.believes() is Mode.LIVE
    assert live.share() == rates(100)
    assert not live.broker.name.is_contested(ms(11_000))
    assert goodbyes(live.stop(11_010)) != []


def test_where_both_yielded_the_lower_one_takes_the_name_back(seat: Seat) -> None:
    lower = seat()
    lower.go_live()
    yielding(lower)
    assert codes(lower.hear(said_by(HIGHER, Claim.YIELDED, names=0), 5200)) == []
    assert codes(lower.hear(said_by(HIGHER, Claim.YIELDED), 5210)) == [AlarmCode.NAME_BACK]


def test_one_that_yielded_and_receives_nothing_waits_for_its_end(live: Desk) -> None:
    yielding(live)
    effects: list[Effect] = []
    while live.now < ms(15_100):
        assert live.wake_at is not None
        effects += live.wake(max(live.wake_at, live.now / 1e6))
    assert live.believes() is Mode.YIELDING
    assert len(halts(tuple(effects))) == 1


def test_a_report_in_our_name_that_we_did_not_send_changes_nothing(live: Desk) -> None:
    rows = live.broker.usage.rows_of("b1")
    assert live.hear(report("b1", usage(90), sequence=1 << 40), 3100) == ()
    assert live.hear(Goodbye(ME), 3110) == ()
    assert live.broker.usage.rows_of("b1") == rows
    assert live.broker.identity.sender == ME
    live.ask(20, at=3200)
    live.wake(4000)
    live.read_back(4005)
    assert live.believes() is Mode.LIVE
