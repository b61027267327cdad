"""What a broker says and when: its start, rounds, early reports, answers, its goodbye.

Each handler's effects exactly. Not covered: who is there (test_membership.py), how far the exchange
is believed (test_standing.py), what is in a round's rows (test_rounds.py).
"""

from dataclasses import replace

import pytest

from rgd.core.broker import sharing as sharing_module
from rgd.core.broker.effects import Append, Publish
from rgd.core.broker.sharing import Mode
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import (
    Ask,
    Goodbye,
    Hello,
    Report,
    RoundRecord,
    ShareRow,
    Speaker,
    UsageRow,
)
from rgd.core.exchange.usage_map import told_hash
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import SharePolicyName
from rgd.core.units import Kind, Pair
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import ME, Desk, gold, reports
from tests.unit.core.values import key, ms, rates, report, usage

#: Peers whose questions are answered 200 and 300 ms later, and at once.
LATER, LATEST, NOW = (Speaker(f"b{when}", ms(when) ^ ME.incarnation) for when in (200, 300, 0))


# Before the start.


def test_before_its_start_a_broker_says_nothing_and_wants_no_waking(desk: Desk) -> None:
    assert desk.wake_at is None
    assert desk.wake(5000) == ()
    desk.ask(1, at=5000)
    assert not desk.ask(1, at=5000)
    assert desk.tell_unreported(5000) == ()
    assert desk.stop(5000) == ()


def test_it_starts_with_a_hello_and_wants_to_be_woken_for_its_round(desk: Desk) -> None:
    assert desk.start(at=50) == (Publish(Hello(ME)),)
    assert desk.wake_at == 1050


# Rounds.


def test_a_round_without_demand_ends_with_a_heartbeat(live: Desk) -> None:
    live.run(2005, 2999)
    assert live.wake(3000) == (Publish(Report(speaker=ME, sequence=3, period_ns=ms(1000))),)
    assert live.wake_at == 4000


def test_until_the_exchange_was_reached_every_round_says_hello_again(desk: Desk) -> None:
    desk.start()
    heartbeat = Report(speaker=ME, sequence=1, period_ns=ms(1100))
    assert desk.wake(1000) == (Publish(heartbeat), Publish(Hello(ME)))
    desk.hear(Hello(ME), 1010)
    assert [type(effect.message) for effect in desk.wake(2000) if isinstance(effect, Publish)] == [
        Report
    ]


def test_a_round_with_demand_is_logged_and_told(live: Desk) -> None:
    live.run(2005, 2999)
    live.hear(report("b2", sequence=8), 2500)
    live.ask(20, at=2900)
    told = replace(usage(200, total=20), topics=1)
    assert live.wake(3000) == (
        Append(
            RoundRecord(
                speaker=ME,
                sequence=2,
                period_ns=ms(1000),
                rows=(ShareRow(told, (50_000, None), (100_000, None), SharePolicyName.MAX_MIN),),
                peers=(("b2", 8),),
            )
        ),
        Publish(
            Report(
                speaker=ME,
                sequence=3,
                period_ns=ms(1000),
                rows=(told,),
                rows_hash=told_hash([told]),
            )
        ),
    )


def test_a_heartbeat_carries_the_hash_of_what_is_told_still(live: Desk) -> None:
    live.ask(20, at=2010)
    live.run(2010, 3000)
    live.ask(20, at=3100)
    (heartbeat,) = reports(live.wake(4000))
    assert heartbeat.rows == ()
    assert heartbeat.rows_hash == told_hash(live.broker.rounds.told.values()) != 0


def test_a_report_says_our_weight_and_which_policies_file_we_have(seat: Seat) -> None:
    desk = seat(weight=2500)
    desk.change(gold(), at=0, policies_hash=77)
    desk.start()
    (heartbeat,) = reports(desk.wake(1000))
    assert (heartbeat.weight, heartbeat.policies_hash) == (2500, 77)


def test_a_round_ends_when_it_is_due_and_not_before(live: Desk) -> None:
    live.run(2005, 2999)
    assert live.wake(2999) == ()
    assert len(live.wake(3020)) == 1
    assert live.wake_at == 4000


def test_rounds_that_were_slept_through_are_not_made_up_for(live: Desk) -> None:
    live.wake(7300)
    assert live.wake(7300) == ()
    live.read_back(7305)
    assert live.wake_at == 8000


def test_what_is_sent_is_counted(live: Desk) -> None:
    assert (live.broker.sequence, live.broker.reports_sent) == (2, 2)


# Early reports.


def test_a_first_refusal_is_reported_at_once_and_once_more_after_the_least_interval(
    live: Desk,
) -> None:
    assert live.ask(200, at=2300)
    assert not live.ask(1, at=2310)
    assert live.calls == 1
    (first,) = reports(live.tell_unreported(2310))
    # 201 messages in the least period that a rate is reckoned over.
    many = UsageRow(
        *key(),
        1,
        Pair(2_000_000),
        Pair(2_010_000),
        admitted_total=Pair(200),
        wanted_total=Pair(201),
    )
    assert first.rows == (many,)
    assert first.rows_hash == told_hash(first.rows)
    assert live.wake_at == 2410
    live.ask(9, at=2350)
    assert live.wake(2409) == ()
    (second,) = reports(live.wake(2410))
    assert second.rows[0].wanted == Pair(90_000)
    assert live.read_back(2411) == ()
    assert live.wake_at == 3000


def test_an_early_report_waits_for_the_least_interval_since_the_last_report(live: Desk) -> None:
    live.wake(3000)
    live.read_back(3005)
    live.ask(200, at=3010)
    live.ask(1, at=3010)
    assert live.tell_unreported(3020) == ()
    assert live.wake_at == 3100
    assert live.tell_unreported(3050) == ()
    assert live.wake_at == 3100
    assert live.wake(3099) == ()
    assert len(reports(live.wake(3100))) == 1


def test_a_call_without_a_refusal_behind_it_says_nothing(live: Desk) -> None:
    assert live.tell_unreported(2500) == ()
    assert live.wake_at == 3000


def test_what_is_urgent_when_the_round_ends_goes_with_the_round(live: Desk) -> None:
    live.run(2005, 2999)
    live.ask(200, at=2990)
    live.ask(1, at=2990)
    live.hear(Hello(NOW), 2985)
    live.wake(2985)
    live.tell_unreported(2990)
    assert live.wake_at == 3000
    live.wake(3000)
    assert live.broker.wake_at is not None
    assert live.broker.wake_at > ms(3100)


def test_a_window_that_an_early_report_has_just_closed_is_left_open_by_the_round(
    live: Desk,
) -> None:
    live.run(2005, 2999)
    live.ask(200, at=2950)
    live.ask(1, at=2950)
    live.tell_unreported(2950)
    live.ask(3, at=2960)
    (heartbeat,) = reports(live.wake(3000))
    assert heartbeat.rows == ()


# Answers.


def test_a_hello_and_a_question_to_us_are_answered_with_everything_we_told(live: Desk) -> None:
    live.ask(20, at=2100)
    live.run(2100, 3000)
    for message in (Hello(LATER), Ask(LATER, "b1")):
        live.hear(message, 3100)
        assert live.wake_at == 3300
        assert live.wake(3299) == ()
        (answer,) = reports(live.wake(3300))
        assert answer.full
        assert answer.rows == tuple(live.broker.rounds.told.values()) != ()
        assert answer.rows_hash == told_hash(answer.rows)
        live.read_back(3305)
        assert live.wake_at == 4000


def test_several_who_ask_get_one_answer_when_the_first_is_due(live: Desk) -> None:
    for asker in (LATEST, LATER, LATEST):
        live.hear(Hello(asker), 2100)
    assert live.wake_at == 2300
    assert len(reports(live.wake(2300))) == 1
    assert live.wake(2400) == ()


def test_a_question_to_another_is_not_ours_to_answer(live: Desk) -> None:
    live.hear(Ask(LATER, "b9"), 2100)
    assert live.wake_at == 3000


@pytest.mark.parametrize("round_ms", [1000, 10])
def test_answers_are_spread_over_half_a_round(seat: Seat, round_ms: int) -> None:
    due = set()
    for asker in range(50):
        desk = seat(round_ns=ms(round_ms))
        desk.start()
        desk.hear(Hello(Speaker("b2", asker * 987_654_321_987)), 0)
        assert desk.wake_at is not None
        due.add(int(desk.wake_at / round_ms * 10))
    assert due == {0, 1, 2, 3, 4}


# Our own words.


def test_our_hello_tells_how_long_a_word_takes(desk: Desk) -> None:
    desk.start()
    desk.read_back(30)
    assert desk.broker.link.settle_ns == ms(30)


def test_our_hello_makes_good_for_no_report(desk: Desk) -> None:
    desk.start()
    desk.wake(1000)
    desk.hear(Hello(ME), 1010)
    assert desk.broker.link.silent_at == ms(2100)


def test_our_rows_count_when_they_are_read_back(live: Desk) -> None:
    live.ask(20, at=2100)
    live.wake(3000)
    assert live.broker.usage.rows(key()) == {}
    assert live.read_back(3005) == ()
    assert set(live.broker.usage.rows(key())) == {"b1"}


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
    assert live.wake_at == 5000


def test_where_a_word_of_ours_did_not_come_back_everything_is_told_again(live: Desk) -> None:
    live.ask(20, at=2010)
    live.wake(3000)
    live.said.clear()
    live.ask(20, at=3100)
    live.wake(4000)
    assert live.read_back(4005) == ()
    assert live.wake_at == 4005
    (again,) = reports(live.wake(4005))
    assert again.full
    assert live.read_back(4010) == ()
    assert set(live.broker.usage.rows(key())) == {"b1"}
    assert live.wake_at == 5000


def test_a_full_report_that_is_not_all_we_told_is_not_told_again_at_once(live: Desk) -> None:
    """Else a broker with more rows than a map takes would never be silent again."""
    live.hear(replace(report("b1", full=True, rows_hash=99, sequence=9), speaker=ME), 2100)
    assert live.wake_at == 3000


# Policies.


def test_new_policies_are_in_force_at_once_and_silently(live: Desk) -> None:
    assert live.share() == rates(100)
    assert live.change(gold(40), at=2100) == ()
    assert live.share() == rates(40)
    assert live.change(gold(40, blocked=True), at=2200) == ()
    assert not live.ask(1, at=2300)
    live.broker.validate()
    live.change(PolicyBook(), at=2400)
    assert list(live.broker.limiter.states()) == []


# The end.


def test_it_leaves_with_a_last_record_and_a_goodbye(live: Desk) -> None:
    live.ask(5, at=2010)
    assert live.stop(2040) == (
        Append(
            RoundRecord(
                speaker=ME,
                sequence=2,
                period_ns=ms(40),
                rows=(
                    ShareRow(
                        usage(50, total=5),
                        (100_000, None),
                        (100_000, None),
                        SharePolicyName.MAX_MIN,
                    ),
                ),
            )
        ),
        Publish(Goodbye(ME)),
    )


# Self-checks.


def test_shares_that_do_not_sum_to_the_quota_are_a_bug(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    desk.go_live()
    desk.share()
    desk.broker.validate()
    monkeypatch.setattr(
        sharing_module, "allocate", lambda policy, quota, rows, floor_ppm: (quota - 1,)
    )
    desk.broker.sharing.refresh_all(ms(2100))
    with pytest.raises(InvariantBroken, match="do not sum to 100000"):
        desk.broker.validate()


def test_a_share_that_does_not_follow_the_map_is_a_bug() -> None:
    desk = Desk()
    desk.go_live()
    desk.share()
    desk.broker.peers.hear(Speaker("b2", 1), ms(2010))
    with pytest.raises(InvariantBroken, match="settles on"):
        desk.broker.validate()


def test_policies_that_may_overshoot_are_not_held_to_the_sum(seat: Seat) -> None:
    desk = seat(policy=SharePolicyName.RESIDUAL, floor_ppm=0)
    desk.go_live()
    desk.ask(20, at=2010)
    desk.run(2010, 3005)
    desk.hear(report("b2", usage(20)), 3100)
    total = sum(share.messages or 0 for share in desk.broker.shares(key()).values())
    assert total > 100_000


def test_a_row_of_nobody_live_is_a_bug() -> None:
    desk = Desk()
    desk.broker.usage.apply(report("b9", usage(5, kind=Kind.DISPATCH)))
    with pytest.raises(InvariantBroken, match="b9"):
        desk.broker.validate()


def test_time_that_an_event_brings_never_runs_backwards(live: Desk) -> None:
    assert live.believes() is Mode.LIVE
    live.wake(2900)
    live.hear(report("b2"), 2000)
    assert live.broker.is_past_start
    assert live.broker._now == ms(2900)
