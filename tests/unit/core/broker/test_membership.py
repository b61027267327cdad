"""The others: joining, telling, missing something, restarting, leaving, falling silent.

Each event's effects exactly. Not covered: how names and sequences are kept
(tests/unit/core/exchange/test_peers.py), who else uses our own name (test_own_name.py).
"""

from dataclasses import replace

from rgd.core.broker.effects import Alarm, AlarmCode, Remember
from rgd.core.exchange.messages import Goodbye, Hello, Sender
from tests.unit.core.broker.desk import Desk, Effects
from tests.unit.core.values import key, rates, report, usage

B2, B2_AGAIN, B3 = Sender("b2", 1), Sender("b2", 2), Sender("b3", 1)


def alarms(effects: Effects) -> list[Alarm]:
    """The alarms among effects."""
    return [effect for effect in effects if isinstance(effect, Alarm)]


# Joining and telling.


def test_a_report_changes_the_map_and_the_share_at_once(live: Desk) -> None:
    live.want_all()
    live.hear(Hello(B2), 2100)
    assert live.share() == rates(99.5)
    assert live.hear(report("b2", usage(500)), 2200) == ()
    assert live.share() == rates(50)
    assert live.broker.reports_received == 1


# Missing something.


def test_a_gap_that_absolute_rows_healed_needs_no_question(live: Desk) -> None:
    live.hear(report("b2", usage(5)), 2100)
    assert live.hear(report("b2", usage(7), sequence=9), 2200) == ()


def test_a_difference_without_a_gap_is_found_with_the_next_report_that_is_whole(live: Desk) -> None:
    rows = [usage(5, group=f"g{number}") for number in range(300)]
    live.hear(report("b2", *rows), 2100)
    part = replace(report("b2", usage(7), sequence=2, rows_hash=99), more=True)
    assert live.hear(part, 2200) == ()
    assert alarms(live.hear(report("b2", usage(8), sequence=3, rows_hash=99), 2300)) == [
        Alarm(AlarmCode.REPORTS_MISSED, "b2")
    ]


# Policies files.


def test_another_policies_file_raises_one_alarm_until_they_agree_again(live: Desk) -> None:
    live.change(live.broker.sharing.snapshot, at=2010, policies_hash=7)
    live.hear(report("b2", policies_hash=7), 2100)
    assert live.broker.membership.differing == set()
    differ = (Alarm(AlarmCode.POLICIES_DIFFER, "b2"),)
    assert live.hear(report("b2", sequence=2, policies_hash=8), 2200) == differ
    assert live.hear(report("b2", sequence=3, policies_hash=8), 2300) == ()
    assert live.broker.membership.differing == {"b2"}
    assert live.hear(report("b2", sequence=4, policies_hash=7), 2400) == ()
    assert live.broker.membership.differing == set()
    assert live.hear(report("b2", sequence=5, policies_hash=8), 2500) == differ
    live.hear(Goodbye(B2), 2600)
    assert live.broker.membership.differing == set()


# Restarting.


def test_a_restart_makes_the_rows_of_the_incarnation_before_void(live: Desk) -> None:
    live.want_all()
    live.hear(report("b2", usage(500), sequence=9), 2100)
    assert live.share() == rates(50)
    assert live.hear(Hello(B2_AGAIN), 2200) == ()
    restarted = (Alarm(AlarmCode.PEER_RESTARTED, "b2"),)
    # A live owner of the name would have answered by then.
    assert live.hear(report("b2", incarnation=2), 2899) == ()
    assert live.hear(report("b2", sequence=2, incarnation=2), 2900) == restarted
    assert set(live.broker.usage.rows(key())) == {"b1"}
    live.run(2900, 2990)
    assert live.hear(report("b2", usage(500), sequence=10), 2991) == ()
    assert set(live.broker.usage.rows(key())) == {"b1"}
    assert live.hear(report("b2", usage(500), sequence=3, incarnation=2), 2992) == ()
    assert live.share() == rates(50)


# Leaving.


def test_a_broker_that_sends_goodbye_is_forgotten_at_once(live: Desk) -> None:
    live.want_all()
    live.hear(report("b2", usage(500)), 2100)
    live.hear(report("b3", usage(500)), 2100)
    assert live.hear(Goodbye(B2), 2200) == (Alarm(AlarmCode.PEER_LEFT, "b2"),)
    assert set(live.broker.usage.rows(key())) == {"b1", "b3"}
    live.said.clear()
    live.run(2200, 2400)
    assert live.share() == rates(50)


# Falling silent.


def test_who_is_silent_for_longer_than_expiry_rounds_is_forgotten(live: Desk) -> None:
    live.hear(report("b2", usage(500)), 2100)
    live.hear(report("b3", usage(500)), 2500)
    live.run(2500, 5199)
    assert live.broker.peers.names() == ["b2", "b3"]
    # A heartbeat takes up to 100 ms, and is looked for four times a round.
    live.said.clear()
    *_, first, second = [alarm for at in (5255, 5505, 5755) for alarm in alarms(live.wake(at))]
    assert (first, second) == (
        Alarm(AlarmCode.PEER_EXPIRED, "b2"),
        Alarm(AlarmCode.PEER_EXPIRED, "b3"),
    )
    assert live.broker.usage.brokers() == set()


def test_of_many_silent_brokers_all_are_forgotten_and_the_names_stored_once(live: Desk) -> None:
    names = [f"b{number}" for number in range(2, 7)]
    for name in names:
        live.hear(report(name, usage(500)), 2100)
    live.run(2500, 5199)
    effects = live.wake(5255)
    assert [alarm.broker for alarm in alarms(effects)] == names
    assert live.broker.usage.brokers() == set()
    assert [effect for effect in effects if isinstance(effect, Remember)] == [Remember(())]
