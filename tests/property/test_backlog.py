"""Laws of backlogs, over topics of any shape.

Not covered: an eviction within the current ledger by its time, which is an estimate; the exact
figures are in tests/unit/core/backlog.
"""

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.backlog.estimate import KEPT_PERCENT, positions_of, unacknowledged
from rgd.core.backlog.model import (
    Ledger,
    Position,
    QuotaType,
    Source,
    SubscriptionBacklog,
    TopicBacklog,
    check_backlog,
)
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.backlog.store import BacklogStore
from rgd.core.policies.model import BacklogAction, BacklogQuota
from rgd.core.units import NS_PER_S, Nanos
from tests.support.there import there

READ_MS = 1_000_000_000
TOPIC = "persistent://acme/orders/eu"

#: How long each ledger took, its entries and bytes.
runs = st.tuples(st.integers(0, 500_000), st.integers(0, 20), st.integers(0, 1000))


@st.composite
def reports(draw: st.DrawFn) -> TopicBacklog:
    """A topic whose messages were written in order; its last ledger is open or not."""
    ledgers: list[Ledger] = []
    times: dict[Position, int] = {}
    begin = READ_MS - 5_000_000
    number = 0
    for lasted, entries, size in draw(st.lists(runs, max_size=6)):
        number += draw(st.integers(1, 3))
        ledgers.append(Ledger(number, entries, size if entries else 0, begin + lasted))
        for entry in range(entries):
            times[Position(number, entry)] = begin + lasted * (entry + 1) // entries
        begin += lasted
    is_open: bool = draw(st.booleans())
    if ledgers and is_open:
        ledgers[-1] = ledgers[-1]._replace(closed_at_ms=None)
    anywhere = st.builds(Position, st.integers(0, 20), st.integers(0, 25))
    places = draw(st.lists(st.none() | anywhere, max_size=4))
    bare = tuple(SubscriptionBacklog(f"s{at}", place) for at, place in enumerate(places))
    report = TopicBacklog(TOPIC, tuple(ledgers), bare, Source.PUSHED, READ_MS)
    found = {one.name: times[position] for position, one in positions_of(report)}
    timed = tuple(one._replace(publish_time_ms=found.get(one.name)) for one in bare)
    report = TopicBacklog(TOPIC, tuple(ledgers), timed, Source.PUSHED, READ_MS)
    check_backlog(report)
    return report


def checked(
    report: TopicBacklog, size: int, age_s: int, *, is_precise: bool, after_s: int
) -> BacklogStore:
    default = BacklogQuota(size, age_s, BacklogAction.EVICT)
    settings = BacklogSettings(default=default, is_precise=is_precise, stale_ns=1 << 60)
    store = BacklogStore(settings, lambda _topic, _blocked: None)
    assert store.report(report, Nanos(0))
    store.ask()
    while not store.checks:
        store.work(Nanos(after_s * NS_PER_S))
    return store


@given(reports(), st.integers(0, 5_000_000), st.booleans(), st.integers(0, 1000))
def test_ages_are_never_negative_and_grow_with_time(
    report: TopicBacklog, earlier_ms: int, is_precise: bool, after_s: int
) -> None:
    skewed = TopicBacklog(
        TOPIC, report.ledgers, report.subscriptions, Source.PUSHED, READ_MS - earlier_ms
    )
    found = there(checked(skewed, -1, -1, is_precise=is_precise, after_s=after_s).get(TOPIC))
    if found.checked is not None and found.checked.age_ms is not None:
        assert found.checked.age_ms >= after_s * 1000


@given(reports())
def test_unacknowledged_entries_are_those_from_the_position_on(report: TopicBacklog) -> None:
    entries = [
        Position(ledger.id, entry) for ledger in report.ledgers for entry in range(ledger.entries)
    ]
    for (name, count), one in zip(unacknowledged(report), report.subscriptions, strict=True):
        assert name == one.name
        oldest = one.oldest
        assert count == (0 if oldest is None else sum(entry >= oldest for entry in entries))


@given(reports(), st.integers(0, 3000), st.integers(1, 5000), st.booleans(), st.integers(0, 600))
def test_an_eviction_brings_size_and_age_inside(
    report: TopicBacklog, size: int, age_s: int, is_precise: bool, after_s: int
) -> None:
    state = there(checked(report, size, age_s, is_precise=is_precise, after_s=after_s).get(TOPIC))
    places = {one.name: position for position, one in positions_of(report)}
    for one in state.evictions:
        assert places[one.subscription] < one.to, "it never goes back"
    to = {one.subscription: one.to for one in state.evictions}
    left = [max(position, to.get(name, position)) for name, position in places.items()]
    if not to:
        return
    kept = [ledger for ledger in report.ledgers if ledger.id >= min(left).ledger]
    last, begin = report.ledgers[-1], min(left)
    if QuotaType.SIZE in state.evictions[0].exceeded:
        if begin.ledger == last.id:
            share = last.bytes * (last.entries - begin.entry) / max(1, last.entries)
            assert share <= size * KEPT_PERCENT / 100
        else:
            assert sum(ledger.bytes for ledger in kept) <= size * KEPT_PERCENT // 100
    if QuotaType.TIME in state.evictions[0].exceeded and begin.entry == 0 and is_precise:
        before = [ledger for ledger in report.ledgers if ledger.id < begin.ledger]
        since = READ_MS + after_s * 1000 - age_s * 10 * KEPT_PERCENT
        assert before
        assert (before[-1].closed_at_ms or 0) >= since or begin.ledger == last.id
    if QuotaType.TIME in state.evictions[0].exceeded and not is_precise:
        since = READ_MS + after_s * 1000 - age_s * 10 * KEPT_PERCENT
        is_over = begin == (last.id, last.entries)
        first = kept[0].closed_at_ms
        assert is_over or first is None or first >= since
