"""The others: joining, telling, missing something, restarting, leaving, falling silent; namesakes.

Each event's effects exactly. Not covered: how names and sequences are kept
(tests/unit/core/exchange/test_peers.py).
"""

from dataclasses import replace

import pytest

from rgd.core.broker.effects import Alarm, AlarmCode, Halt, Publish, Remember
from rgd.core.broker.sharing import Mode
from rgd.core.exchange.messages import Ask, Goodbye, Hello, Message, Report, Speaker
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import ME, Desk, reports
from tests.unit.core.values import key, rates, report, usage

B2, B2_AGAIN, B3 = Speaker("b2", 1), Speaker("b2", 2), Speaker("b3", 1)
NAMESAKE = Speaker("b1", 9)


def wants_all(desk: Desk) -> None:
    """Let us want the whole quota, as the map knows."""
    desk.share()
    desk.hear(report("b1", usage(500), sequence=100), 2010)


# Joining and telling.


@pytest.mark.parametrize("word", [Hello(B2), report("b2"), Ask(B2, "b9")], ids=["1", "2", "3"])
def test_whoever_speaks_has_joined_and_is_remembered(live: Desk, word: Message) -> None:
    live.share()
    joined = (Alarm(AlarmCode.PEER_JOINED, "b2"), Remember(("b2",)))
    assert live.hear(word, 2100) == joined
    assert live.share() == rates(50)
    assert live.hear(Hello(B3), 2200) == (
        Alarm(AlarmCode.PEER_JOINED, "b3"),
        Remember(("b2", "b3")),
    )


def test_a_report_changes_the_map_and_the_share_at_once(live: Desk) -> None:
    wants_all(live)
    live.hear(Hello(B2), 2100)
    assert live.share() == rates(99.5)
    assert live.hear(report("b2", usage(500)), 2200) == ()
    assert live.share() == rates(50)
    assert live.broker.reports_received == 1


def test_a_report_that_was_heard_before_changes_nothing(live: Desk) -> None:
    wants_all(live)
    live.hear(report("b2", usage(30), sequence=2), 2100)
    assert live.hear(report("b2", usage(500), sequence=1), 2200) == ()
    assert live.hear(report("b2", usage(500), sequence=2), 2300) == ()
    assert live.broker.usage.rows(key())["b2"] == usage(30)
    assert live.broker.reports_received == 1


def test_a_peers_weight_counts(live: Desk) -> None:
    wants_all(live)
    live.hear(report("b2", usage(500), weight=3000), 2200)
    assert live.share().messages == 25_250


# Missing something.


def test_who_told_more_than_we_hold_is_asked_to_repeat_itself(live: Desk) -> None:
    live.hear(report("b2"), 2100)
    missed = (Alarm(AlarmCode.REPORTS_MISSED, "b2"), Publish(Ask(ME, "b2")))
    assert live.hear(report("b2", sequence=3, rows_hash=99), 2200) == missed
    # Once a round, however much it says meanwhile.
    assert live.hear(report("b2", sequence=4, rows_hash=99), 3199) == ()
    assert live.hear(report("b2", sequence=5, rows_hash=99), 3200) == missed
    assert live.hear(report("b2", usage(5), sequence=6, full=True), 3300) == ()
    assert live.hear(report("b2", usage(5), sequence=7), 4300) == ()


def test_a_gap_that_absolute_rows_healed_needs_no_question(live: Desk) -> None:
    live.hear(report("b2", usage(5)), 2100)
    assert live.hear(report("b2", usage(7), sequence=9), 2200) == ()


def test_while_starting_nobody_is_asked_for_the_answers_are_under_way(desk: Desk) -> None:
    desk.start()
    desk.hear(report("b2"), 100)
    assert desk.hear(report("b2", sequence=2, rows_hash=99), 200) == ()


# Policies files.


def test_another_policies_file_raises_one_alarm_until_they_agree_again(live: Desk) -> None:
    live.change(live.broker.sharing.book, at=2010, policies_hash=7)
    live.hear(report("b2", policies_hash=7), 2100)
    assert live.broker.differing == set()
    differ = (Alarm(AlarmCode.POLICIES_DIFFER, "b2"),)
    assert live.hear(report("b2", sequence=2, policies_hash=8), 2200) == differ
    assert live.hear(report("b2", sequence=3, policies_hash=8), 2300) == ()
    assert live.broker.differing == {"b2"}
    assert live.hear(report("b2", sequence=4, policies_hash=7), 2400) == ()
    assert live.broker.differing == set()
    assert live.hear(report("b2", sequence=5, policies_hash=8), 2500) == differ
    live.hear(Goodbye(B2), 2600)
    assert live.broker.differing == set()


# Restarting.


def test_a_restart_makes_the_rows_of_the_incarnation_before_void(live: Desk) -> None:
    wants_all(live)
    live.hear(report("b2", usage(500), sequence=9), 2100)
    assert live.share() == rates(50)
    assert live.hear(Hello(B2_AGAIN), 2200) == ()
    restarted = (Alarm(AlarmCode.PEER_RESTARTED, "b2"),)
    assert live.hear(report("b2", incarnation=2), 2300) == restarted
    assert set(live.broker.usage.rows(key())) == {"b1"}
    live.run(2300, 2500)
    assert live.share() == rates(99.5)
    assert live.hear(report("b2", usage(500), sequence=10), 2600) == ()
    assert live.hear(report("b2", usage(500), sequence=2, incarnation=2), 2700) == ()
    assert live.share() == rates(50)


def test_what_a_restarted_peer_said_too_early_is_asked_for(live: Desk) -> None:
    live.hear(report("b2", usage(500)), 2100)
    early = report("b2", usage(70), incarnation=2)
    assert live.hear(early, 2200) == ()
    assert live.broker.usage.rows(key())["b2"] == usage(500)
    assert live.hear(replace(early, sequence=2, rows=()), 2300) == (
        Alarm(AlarmCode.PEER_RESTARTED, "b2"),
        Alarm(AlarmCode.REPORTS_MISSED, "b2"),
        Publish(Ask(ME, "b2")),
    )


def test_a_namesake_of_a_live_peer_is_answered_and_takes_none_of_its_share_away(
    live: Desk,
) -> None:
    wants_all(live)
    live.hear(report("b2", usage(500)), 2100)
    live.wake(3000)
    namesake = Speaker("b2", 1 ^ 300_000_000)
    assert live.hear(Hello(namesake), 3100) == ()
    assert live.wake_at == 3400
    early = replace(report("b2", usage(9)), speaker=namesake)
    assert live.hear(early, 3110) == ()
    # The owner answers the namesake, which then goes.
    assert live.hear(report("b2", usage(500), sequence=2, full=True), 3120) == ()
    assert live.hear(Goodbye(namesake), 3130) == ()
    assert live.share() == rates(50)
    assert live.broker.usage.rows(key())["b2"] == usage(500)


# Leaving.


def test_who_says_goodbye_is_forgotten_at_once(live: Desk) -> None:
    wants_all(live)
    live.hear(report("b2", usage(500)), 2100)
    live.hear(report("b3", usage(500)), 2100)
    left = (Alarm(AlarmCode.PEER_LEFT, "b2"), Remember(("b3",)))
    assert live.hear(Goodbye(B2), 2200) == left
    assert set(live.broker.usage.rows(key())) == {"b1", "b3"}
    live.run(2200, 2400)
    assert live.share() == rates(50)


def test_a_goodbye_of_nobody_we_know_means_nothing(live: Desk) -> None:
    live.hear(report("b2", usage(500)), 2100)
    assert live.hear(Goodbye(B2_AGAIN), 2200) == ()
    assert live.hear(Goodbye(B3), 2200) == ()
    assert live.broker.peers.names() == ["b2"]


def test_what_a_peer_said_before_its_goodbye_does_not_bring_it_back(live: Desk) -> None:
    live.hear(report("b2", usage(5)), 2100)
    live.hear(Goodbye(B2), 2200)
    assert live.hear(report("b2", usage(5), sequence=2), 2210) == ()
    assert live.broker.usage.brokers() == set()
    assert len(live.broker.peers) == 0


# Falling silent.


def test_who_is_silent_for_longer_than_expiry_rounds_is_forgotten_with_the_round(
    live: Desk,
) -> None:
    live.hear(report("b2", usage(500)), 2100)
    live.hear(report("b3", usage(500)), 2500)
    live.run(2500, 5000)
    assert live.broker.peers.names() == ["b2", "b3"]
    assert live.wake(6000)[:3] == (
        Alarm(AlarmCode.PEER_EXPIRED, "b2"),
        Alarm(AlarmCode.PEER_EXPIRED, "b3"),
        Remember(()),
    )
    assert live.broker.usage.brokers() == set()


def test_a_heartbeat_is_a_sign_of_life(live: Desk) -> None:
    live.hear(report("b2", usage(500)), 2100)
    live.run(2100, 4000)
    live.hear(report("b2", usage(500), sequence=2), 4100)
    live.run(4100, 7000)
    assert live.broker.peers.names() == ["b2"]


# Namesakes.


def test_starting_under_a_name_whose_owner_answers_is_refused(desk: Desk) -> None:
    desk.start()
    conflict, halt = desk.hear(report("b1", incarnation=9, full=True), 10)
    assert conflict == Alarm(AlarmCode.NAME_CONFLICT, "b1")
    assert isinstance(halt, Halt)
    assert "'b1'" in halt.reason
    assert "broker.name" in halt.reason


def test_of_two_that_start_together_the_lower_incarnation_stays(seat: Seat) -> None:
    lower, higher = seat(), seat(speaker=NAMESAKE)
    lower.start()
    higher.start()
    alarm = Alarm(AlarmCode.NAME_CONFLICT, "b1")
    assert lower.hear(Hello(NAMESAKE), 10)[0] == alarm
    assert reports(lower.hear(Hello(NAMESAKE), 10))[0].full
    first, halt = higher.hear(Hello(ME), 10)
    assert first == alarm
    assert isinstance(halt, Halt)


def test_a_live_owner_answers_a_namesakes_hello_at_once_and_stays(live: Desk) -> None:
    live.ask(20, at=2100)
    live.run(2100, 3005)
    alarm, answer = live.hear(Hello(NAMESAKE), 3100)
    assert alarm == Alarm(AlarmCode.NAME_CONFLICT, "b1")
    assert isinstance(answer, Publish)
    assert isinstance(answer.message, Report)
    assert answer.message.full
    assert answer.message.rows != ()
    assert live.believes() is Mode.LIVE


def test_of_two_that_are_live_neither_goes_but_both_say_so(live: Desk) -> None:
    answer = report("b1", usage(5), incarnation=9, full=True)
    assert live.hear(answer, 2100) == (Alarm(AlarmCode.NAME_CONFLICT, "b1"),)


@pytest.mark.parametrize(
    "late", [report("b1", usage(5), incarnation=9), Goodbye(NAMESAKE), Ask(NAMESAKE, "b2")]
)
def test_late_words_of_our_own_crashed_self_mean_nothing(desk: Desk, late: Message) -> None:
    desk.start()
    assert desk.hear(late, 10) == ()
    assert desk.broker.usage.brokers() == set()
    assert desk.broker.peers.names() == []
