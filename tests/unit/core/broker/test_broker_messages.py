"""What a broker hears of itself, its policies, its end, and what it keeps by place.

Not covered: rounds and early reports (test_broker.py).
"""

from dataclasses import replace

import pytest

from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import Hello
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.columns import share_out
from rgd.core.units import Kind
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import ME, Desk
from tests.unit.core.values import key, ms, report, usage

# Our own words.


def test_our_hello_tells_how_long_a_word_takes(desk: Desk) -> None:
    desk.start()
    desk.read_back(30)
    assert desk.broker.link.damping_ns == ms(30)


def test_our_hello_makes_good_for_no_report(desk: Desk) -> None:
    desk.start()
    desk.wake(1000)
    desk.hear(Hello(ME), 1010)
    assert desk.broker.link.silent_at == ms(2100)


def test_a_word_of_ours_that_comes_late_or_twice_changes_nothing(live: Desk) -> None:
    live.ask(20, at=2100)
    live.wake(3000)
    (first,) = live.said
    live.ask(60, at=3100)
    live.wake(4000)
    live.read_back(4005)
    held = dict(live.broker.usage.rows_of("b1"))
    assert live.hear(first, 4010) == ()
    assert live.broker.usage.rows_of("b1") == held
    assert live.rests_until(5000)


def test_a_full_report_that_lacks_rows_is_not_sent_again_at_once(live: Desk) -> None:
    """Else a broker with more rows than a map takes would never be silent again."""
    while live.broker.identity.sequence < 9:
        live.broker.identity.next_sequence()
    live.hear(replace(report("b1", full=True, rows_hash=99, sequence=9), sender=ME), 2100)
    assert live.rests_until(3000)


# Self-checks.


def test_shares_that_do_not_sum_to_the_quota_are_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    desk.go_live()
    desk.share()
    desk.broker.validate()
    # A reckoning that loses a thousandth of a unit.
    monkeypatch.setattr(
        "rgd.core.broker.broker_index.share_out",
        lambda rows, quota, **rest: share_out(rows, quota - 1, **rest),
    )
    desk.broker.sharing.refresh_all(ms(2100))
    desk.catch_up()
    with pytest.raises(InvariantBroken, match=r"do not sum to \[100000, -1\]"):
        desk.broker.validate()


def test_policies_that_may_overshoot_are_not_held_to_the_sum(seat: Seat) -> None:
    desk = seat(policy=SharePolicyName.RESIDUAL, floor_ppm=0)
    desk.go_live()
    desk.ask(20, at=2010)
    desk.run(2010, 3005)
    desk.hear(report("b2", usage(20)), 3100)
    total = sum(share.messages or 0 for share in desk.broker.shares(key()).values())
    assert total > 100_000


def test_a_row_of_a_broker_that_is_not_live_is_a_bug() -> None:
    desk = Desk()
    desk.broker.usage.apply(report("b9", usage(5, kind=Kind.DISPATCH)))
    with pytest.raises(InvariantBroken, match="b9"):
        desk.broker.validate()
