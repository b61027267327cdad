"""Groups under pressure: rows say what the usage map says, and the shares of all brokers are the quota."""

import pytest

from rgd.core.broker.broker import Broker
from rgd.core.broker.events import MessageReceived, PoliciesChanged, Started
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, Limit, SharePolicyName
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Dimension, Kind
from rgd.views import pressure
from rgd.views.live import members_view
from rgd.views.live_model import GoneView, PressureView
from rgd.views.pressure import (
    Pressure,
    RowKey,
    coloured_of,
    row_of,
    tables,
)
from tests.unit.core.values import key, ms, rates, report, usage
from tests.unit.views.conftest import NAMES, START

ALL = 1_000


def looked(broker: Broker) -> Pressure:
    found = Pressure(broker)
    for _ in found.look():
        pass
    return found


def rows_of(broker: Broker, coloured: tuple[str, ...] | None = None) -> list[PressureView]:
    top = looked(broker).top(ALL)
    found = {
        row_key: table
        for table in tables(broker, list({row.key: 0 for row in top}))
        for row_key in table.keys
    }
    return [row_of(broker, found[row.key], row, coloured, {}) for row in top]


def is_max_min(broker: Broker, row: PressureView) -> bool:
    policy = broker.sharing.snapshot.groups[row.group].policy
    return policy in {None, SharePolicyName.MAX_MIN}


def test_each_limited_group_is_a_row_and_its_shares_are_the_quota(broker: Broker) -> None:
    slots = len(broker.index)
    rows = rows_of(broker)
    # A look creates nothing.
    assert len(broker.index) == slots
    limited = {
        (name, kind, dimension)
        for name in NAMES
        for kind in Kind
        for dimension in Dimension
        if broker.sharing.quota(key(name, kind)).of(dimension) is not None
    }
    assert {(row.group, row.kind, row.dimension) for row in rows} == limited
    for row in rows:
        assert [part.broker for part in row.brokers] == ["b0", "b1", "b2", "b3"]
        if is_max_min(broker, row):
            assert sum(part.share for part in row.brokers) == pytest.approx(row.quota)
        assert sum(part.wanted for part in row.brokers) == pytest.approx(row.wanted)


def test_brokers_without_a_colour_are_shown_together(broker: Broker) -> None:
    whole, short = rows_of(broker), rows_of(broker, ("b1", "b3"))
    for row, other in zip(whole, short, strict=True):
        assert [part.broker for part in other.brokers] == ["b1", "b3"]
        assert other.others is not None
        assert other.others.brokers == 2
        shares = other.others.share + sum(part.share for part in other.brokers)
        assert shares == pytest.approx(sum(part.share for part in row.brokers))
        assert (other.wanted, other.lowest) == (row.wanted, row.lowest)


def cluster(*groups: Group) -> Broker:
    """b1 with a peer b2, which has reported nothing."""
    broker = Broker(BrokerSettings(Sender("b1", 1)), START)
    broker.handle(PoliciesChanged(START, PolicySnapshot({group.name: group for group in groups})))
    broker.handle(Started(START))
    broker.handle(MessageReceived(ms(10), report("b2", full=True)))
    return broker


def test_the_most_pressure_comes_first_and_the_lowest_ratio_names_its_broker() -> None:
    broker = cluster(
        Group("calm", Limit(rates(100))),
        Group("gold", Limit(rates(100))),
        Group("late", Limit(rates(100)), policy=SharePolicyName.PROPORTIONAL),
        Group("free"),
        Group("stopped", Limit(rates(100)), blocked=True),
    )
    broker.handle(
        MessageReceived(
            ms(20),
            report(
                "b2",
                usage(300, 30),
                usage(10, group="calm"),
                usage(200, 100, group="late"),
                sequence=2,
                full=True,
            ),
        )
    )
    rows = rows_of(broker)
    assert [(row.group, row.pressure) for row in rows] == [
        ("gold", 3.0),
        ("late", 2.0),
        ("calm", 0.1),
    ]
    # The fair part of b2 is the quota less b1's floor, also where another policy divides it.
    gold, late, calm = rows
    assert (gold.lowest_broker, calm.lowest) == ("b2", 1.0)
    assert gold.lowest == pytest.approx(30 / gold.brokers[1].share, abs=1e-3)
    assert late.lowest == pytest.approx(100 / gold.brokers[1].share, abs=1e-3)
    found = looked(broker)
    assert (found.total, found.short) == (3, 2)
    assert [row.key.group for row in found.top(1)] == ["gold"]


def test_a_look_beyond_its_bound_goes_on_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pressure, "LOOKED_AT_MAX", 2)
    broker = cluster(*(Group(f"g{at}", Limit(rates(100))) for at in range(5)))
    wanted = [usage(200, group=f"g{at}") for at in range(5)]
    broker.handle(MessageReceived(ms(20), report("b2", *wanted, sequence=2, full=True)))
    found = Pressure(broker)
    shorts = []
    for _ in range(3):
        list(found.look())
        shorts.append(found.short)
    assert shorts == [2, 4, 5]


def test_changed_and_deleted_groups_are_read_again() -> None:
    broker = cluster(Group("gold", Limit(rates(100))), Group("gone", Limit(rates(100))))
    found = looked(broker)
    broker.handle(
        PoliciesChanged(ms(30), PolicySnapshot({"gold": Group("gold", Limit(rates(5), rates(7)))}))
    )
    assert list(tables(broker, [key("gone")])) == []
    list(found.look())
    assert found.top(ALL) == [
        RowKey(key("gold", kind), Dimension.MESSAGES) for kind in (Kind.DISPATCH, Kind.PUBLISH)
    ]


def test_of_many_brokers_those_that_want_most_have_a_colour() -> None:
    broker = cluster(Group("gold", Limit(rates(100))))
    names = [f"c{at:02}" for at in range(12)]
    for at, name in enumerate(names):
        broker.handle(MessageReceived(ms(30 + at), report(name, usage(at + 1), full=True)))
    found = list(tables(broker, [key("gold")]))
    assert coloured_of(found) == tuple(names[-8:])


def test_a_member_that_says_nothing_for_a_round_and_a_half_is_silent() -> None:
    broker = cluster(Group("gold"))
    gone = {"b9": ms(500), "b8": ms(700)}
    heard = members_view(broker, ms(1_500), gone)
    assert [(one.broker, one.silent) for one in heard.members] == [
        ("b1", False),
        ("b2", False),
    ]
    assert heard.gone == (GoneView("b8", 0.8), GoneView("b9", 1.0))
    silent = members_view(broker, ms(1_511), {})
    assert [(one.broker, one.silent) for one in silent.members] == [
        ("b2", True),
        ("b1", False),
    ]
    assert (silent.total, silent.silent) == (2, 1)
