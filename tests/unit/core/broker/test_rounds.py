"""What a round says and logs: each window once, and no count lost.

Not covered: which changes are worth telling (tests/unit/core/exchange/test_suppression.py), when a
round ends (test_broker.py).
"""

from dataclasses import dataclass, field, replace

import pytest

from rgd.core.broker.link import Link
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Mode, Sharing
from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.limiter import Limiter
from rgd.core.exchange.messages import RoundRecord, ShareRow, Speaker, UsageRow
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Group, Limit, SharePolicyName
from rgd.core.units import MILLI, Kind, Pair
from tests.unit.core.values import BUCKETS, key, ms, rates

SETTINGS = BrokerSettings(Speaker("b1", 1), full_every_rounds=1_000_000)
GROUPS = {
    "gold": Group("gold", Limit(rates(100))),
    "trial": Group("trial", Limit(rates(1000)), policy=SharePolicyName.STEAL),
}


@dataclass
class House:
    """Rounds over a real limiter; every request is of one group, named directly."""

    settings: BrokerSettings = SETTINGS
    granted: int = 0
    log: list[RoundRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sharing = Sharing(
            self.settings, UsageMap(), Peers(0), Link(1, 1), apply=lambda *told: None
        )
        self.sharing.book = PolicyBook(GROUPS)
        self.limiter = Limiter(BUCKETS, lambda group, kind: group.rates(kind))
        self.limiter.set_book(PolicyBook(GROUPS), ms(0))
        self.rounds = Rounds(self.settings, self.limiter, self.sharing)

    def ask(self, messages: int, at: float, group: str = "gold", size: int = 0) -> None:
        request = Request(messages=messages, bytes=size, group=group, topic="t")
        answer = self.limiter.acquire(request, ms(at))
        assert isinstance(answer, Decision)
        self.granted += answer.messages

    def end(self, at: float, *, is_last: bool = False) -> list[UsageRow]:
        rows = self.rounds.end(ms(at), is_last=is_last)
        self.log.append(self.rounds.record(len(self.log), (), ms(at)))
        return rows

    def logged(self, group: str = "gold") -> ShareRow:
        """The row of the newest record."""
        return next(row for row in self.log[-1].rows if row.usage.group == group)

    def logged_total(self) -> int:
        """What the log says was admitted of gold since the start."""
        rows = (row for record in self.log for row in record.rows if row.usage.group == "gold")
        return max(row.usage.admitted_total.messages for row in rows)


def wanted(row: UsageRow) -> float:
    return row.wanted.messages / MILLI


def test_a_round_tells_what_was_asked_for_in_it() -> None:
    house = House()
    house.ask(20, at=0)
    house.ask(10, at=500, group="trial")
    gold, trial = house.end(1000)
    assert (gold.group, gold.kind, gold.topics) == ("gold", Kind.PUBLISH, 1)
    assert gold.admitted == gold.wanted == Pair(20_000)
    assert gold.admitted_total == gold.wanted_total == Pair(20)
    # A group that was idle is reckoned from its first request on.
    assert wanted(trial) == 20
    assert house.rounds.told == {key(): gold, key("trial"): trial}


def test_a_known_group_is_reckoned_over_the_whole_round() -> None:
    house = House()
    house.ask(20, at=0)
    house.end(1000)
    house.ask(10, at=1500)
    assert [wanted(row) for row in house.end(2000)] == [10]


def test_nothing_asked_is_nothing_told_or_logged() -> None:
    house = House()
    assert house.end(1000) == []
    house.ask(0, at=1000)
    assert house.end(2000) == []
    assert [[row.sent for row in record.rows] for record in house.log] == [[], [False]]


def test_a_round_is_logged_with_what_was_allowed_in_it() -> None:
    house = House()
    house.ask(100, at=0)
    house.ask(30, at=0)
    house.ask(30, at=0)
    house.ask(5, at=500, group="trial")
    (row, _) = house.end(1000)
    assert house.logged() == ShareRow(
        usage=row,
        share=(100_000, None),
        quota=(100_000, None),
        policy=SharePolicyName.MAX_MIN,
        refused=Pair(60),
        sent=True,
    )
    assert house.logged("trial").policy is SharePolicyName.STEAL
    assert [row.usage.group for row in house.log[-1].rows] == ["gold", "trial"]


def test_a_record_says_whose_when_and_how_long() -> None:
    house = House()
    first = house.rounds.record(7, (("b2", 3),), ms(1000))
    assert (first.speaker, first.sequence, first.peers) == (Speaker("b1", 1), 7, (("b2", 3),))
    assert (first.period_ns, first.isolated) == (ms(1000), False)
    house.sharing.mode = Mode.EQUAL
    second = house.rounds.record(8, (), ms(2500))
    assert (second.period_ns, second.isolated) == (ms(1500), True)


def test_a_row_that_is_held_back_is_logged_as_such_and_counted() -> None:
    house = House()
    for start in (0, 1000):
        house.ask(20, at=start)
        house.end(start + 1000)
    assert not house.logged().sent
    assert house.logged().usage.admitted_total == Pair(40)
    assert house.rounds.rows_suppressed == 1


# Idle.


def test_an_idle_group_is_told_and_logged_as_zero_once_with_its_true_totals() -> None:
    house = House()
    for start in (0, 1000, 2000):
        house.ask(20, at=start)
        house.end(start + 1000)
    assert house.rounds.told[key()].admitted_total == Pair(20)
    (idle,) = house.end(4000)
    assert idle.is_idle
    assert (idle.topics, idle.admitted_total, idle.wanted_total) == (0, Pair(60), Pair(60))
    assert (house.logged().usage, house.logged().sent) == (idle, True)
    assert house.end(5000) == []
    assert house.log[-1].rows == ()


def test_a_group_that_was_deleted_is_told_as_zero_and_not_logged() -> None:
    house = House()
    house.ask(20, at=0)
    house.end(1000)
    house.limiter.set_book(PolicyBook(), ms(1000))
    assert [row.is_idle for row in house.end(2000)] == [True]
    assert house.log[-1].rows == ()
    assert house.rounds.told == {}


# Early reports.


def test_unreported_is_what_was_refused_and_not_told() -> None:
    house = House()
    assert house.rounds.unreported() == []
    house.ask(100, at=0)
    assert house.rounds.unreported() == []
    house.ask(1, at=0)
    assert house.rounds.unreported() == [key()]
    house.rounds.early([key()], ms(100))
    assert house.rounds.unreported() == []


def test_an_early_report_closes_the_windows_of_its_groups_alone() -> None:
    house = House()
    house.ask(20, at=0)
    house.ask(20, at=0, group="trial")
    (row,) = house.rounds.early([key()], ms(200))
    assert (row.group, wanted(row)) == ("gold", 100)
    house.ask(4, at=300)
    rows = {row.group: wanted(row) for row in house.end(1000)}
    assert rows == {"gold": 5, "trial": 20}


def test_an_early_report_is_logged_as_sent_even_if_the_round_adds_nothing_to_it() -> None:
    house = House()
    house.ask(20, at=0)
    house.rounds.early([key()], ms(200))
    house.ask(80, at=600)
    assert house.end(1000) == []
    assert house.logged().sent
    assert house.logged().usage.admitted_total == Pair(100)
    assert house.rounds.rows_suppressed == 0


def test_refusals_of_an_early_window_are_logged_with_the_round() -> None:
    house = House()
    house.ask(100, at=0)
    house.ask(7, at=0, size=70)
    house.rounds.early([key()], ms(200))
    house.ask(5, at=300, size=50)
    house.end(1000)
    assert house.logged().refused == Pair(12, 120)


def test_a_window_that_an_early_report_has_just_closed_stays_open() -> None:
    house = House()
    house.ask(20, at=0)
    house.rounds.early([key()], ms(950))
    house.ask(3, at=960)
    assert house.end(1000) == []
    # The three are counted once, in the round that follows.
    assert house.logged().usage.admitted_total == Pair(20)
    (row,) = house.end(2000)
    assert row.admitted_total == Pair(23)
    assert wanted(row) == pytest.approx(3 / 1.05, abs=0.001)


def test_a_window_as_long_as_the_least_interval_is_closed() -> None:
    house = House()
    house.ask(20, at=900)
    (row,) = house.end(1000)
    assert wanted(row) == 200


def test_an_early_report_of_nothing_says_nothing() -> None:
    house = House()
    house.ask(0, at=0)
    assert house.rounds.early([key(), key("never-asked")], ms(200)) == []
    assert house.rounds.early([key()], ms(300)) == []
    assert house.rounds.told == {}


def test_after_a_round_a_refusal_is_called_out_again_unless_the_peers_know() -> None:
    house = House()
    house.ask(100, at=0)
    house.ask(1, at=0)
    gold = house.limiter.state(key())
    assert gold is not None
    house.end(1000)
    assert gold.reported
    house.end(2000)
    assert not gold.reported


# The end.


def test_the_last_round_counts_what_was_asked_a_moment_before() -> None:
    house = House()
    house.ask(10, at=0)
    house.end(1000)
    house.ask(5, at=1030)
    house.end(1050, is_last=True)
    assert house.logged_total() == house.granted == 15


def test_a_lesser_interval_makes_shorter_windows() -> None:
    house = House(replace(SETTINGS, min_interval_ns=ms(10)))
    house.ask(1, at=0)
    house.rounds.early([key()], ms(985))
    house.ask(1, at=990)
    (row,) = house.end(1000)
    assert wanted(row) == pytest.approx(66.6, abs=0.1)
