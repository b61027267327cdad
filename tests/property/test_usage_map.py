"""The usage map, whatever is lost, doubled or overtaken on the way: all end with the same map.

The receivers are real brokers; the senders are lists of what they told, round by round. Not
covered: a network with time (tests/simulation).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Publish
from rgd.core.broker.events import MessageReceived, PoliciesChanged, Started, Woken
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Ask, Hello, Report, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.policies.model import Group, GroupKey, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_S, Kind, Nanos, Pair
from tests.support.columns import advertised_hash

pytestmark = pytest.mark.slow

BROKERS = ("a", "b", "c")
GROUPS = ("gold", "silver")
KEYS = [GroupKey(group, kind) for group in GROUPS for kind in Kind]
ME = Sender("me", 1)
#: When a receiver believes the map: it has listened for a namesake.
BEGIN = Nanos(NS_PER_S)
SNAPSHOT = PolicySnapshot({name: Group(name, Limit(Rates(1000), Rates(1000))) for name in GROUPS})

amounts = st.sampled_from([Pair(), Pair(5), Pair(0, 7), Pair(900, 900)])
rows = st.builds(
    UsageRow, st.sampled_from(GROUPS), st.sampled_from(Kind), st.integers(0, 2), amounts, amounts
)
changes = st.lists(rows, max_size=4, unique_by=lambda row: (row.group, row.kind)).map(tuple)


Told = dict[GroupKey, UsageRow]


def tell(told: Told, rows_told: Sequence[UsageRow], *, full: bool) -> Told:
    """What a broker has told in all, after these rows."""
    after = {} if full else dict(told)
    for row in rows_told:
        key = GroupKey(row.group, row.kind)
        after.pop(key, None)
        if not row.is_idle:
            after[key] = row
    return after


@st.composite
def reports_of(draw: st.DrawFn, broker: str) -> list[Report]:
    """What one broker says, in its own order; the last is a heartbeat."""
    told: Told = {}
    said = []
    sender = Sender(broker, 1)
    for sequence, change in enumerate(draw(st.lists(changes, max_size=6)), start=1):
        told = tell(told, change, full=False)
        rows_hash = advertised_hash(told.values())
        said.append(Report(sender, sequence, 1, UsageColumns.of(*change), rows_hash=rows_hash))
    last = Report(sender, len(said) + 1, 1, rows_hash=advertised_hash(told.values()))
    return [*said, last]


def everything(said: list[Report]) -> Report:
    """The answer of a broker that is asked to repeat itself."""
    told: Told = {}
    for report in said:
        told = tell(told, list(report.rows), full=False)
    rows_told = UsageColumns.of(*told.values())
    return replace(said[-1], sequence=len(said) + 1, rows=rows_told, full=True)


def receiver() -> Broker:
    """A broker that believes the map, of which it knows nothing yet."""
    broker = Broker(BrokerSettings(ME, expected_brokers=2), Nanos(0))
    broker.handle(PoliciesChanged(Nanos(0), SNAPSHOT))
    broker.handle(Started(Nanos(0)))
    broker.handle(MessageReceived(Nanos(0), Hello(ME)))
    broker.handle(MessageReceived(Nanos(0), Hello(Sender("first", 1))))
    broker.handle(Woken(BEGIN))
    assert broker.mode is Mode.LIVE
    return broker


@given(st.data())
def test_whatever_is_lost_doubled_or_overtaken_one_answer_makes_all_maps_the_same(
    data: st.DataObject,
) -> None:
    said = {broker: data.draw(reports_of(broker)) for broker in BROKERS}
    sent = [report for reports in said.values() for report in reports[:-1]]
    arrivals = data.draw(st.lists(st.sampled_from(sent), max_size=40)) if sent else []
    receivers = [receiver(), receiver()]
    for report in arrivals:
        receivers[0].handle(MessageReceived(BEGIN, report))
    for report in sent:
        receivers[1].handle(MessageReceived(BEGIN, report))
    for one in receivers:
        asked = Counter[str]()
        # Later than the interval in which a broker is asked only once.
        now = Nanos(BEGIN + NS_PER_S)
        for broker in BROKERS:
            effects = one.handle(MessageReceived(now, said[broker][-1]))
            messages = [effect.message for effect in effects if isinstance(effect, Publish)]
            asked.update(message.broker for message in messages if isinstance(message, Ask))
        for broker in asked:
            one.handle(MessageReceived(now, everything(said[broker])))
        one.validate()
    for broker in BROKERS:
        whole = {GroupKey(row.group, row.kind): row for row in everything(said[broker]).rows}
        assert [dict(one.usage.rows_of(broker)) for one in receivers] == [whole] * 2
    for key in KEYS:
        assert receivers[0].shares(key) == receivers[1].shares(key)
