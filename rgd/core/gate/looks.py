"""What views and metrics read of the gate, taken where the buckets are.

Laws: a look takes no tokens and makes no bucket, chain or counter. It takes the gate and plain data and gives plain
data, so it may be asked from another process (`rgd.core.gate.port.Gate.ask`). One look is a small piece of work: some
hundreds of names or groups at most. Longer lists come in pages of a copy (`listed`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from rgd.core.backlog.model import QuotaType
from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Level, Name, Request
from rgd.core.buckets.level import GroupState, LevelState
from rgd.core.buckets.levels import LimitKey
from rgd.core.buckets.recent_refusals import RecentRefusals, Refusals
from rgd.core.buckets.soft import SoftState
from rgd.core.buckets.throttled import Throttled
from rgd.core.counts.page import Ungoverned
from rgd.core.gate.local import LocalGate
from rgd.core.gate.port import Gate
from rgd.core.leases.leases import LeaseEvent
from rgd.core.leases.table import Load
from rgd.core.policies.model import BacklogAction, GroupKey, Rates
from rgd.core.units import Dimension, Kind, Nanos, Pair

#: Entries of a list that come at once.
PAGE: Final = 500
#: Subscriptions whose counters come at once: a quarter of a millisecond of the gate.
THROTTLED_PAGE: Final = 32

_Entry = TypeVar("_Entry")


def listed(gate: Gate, listing: Callable[[LocalGate], Sequence[_Entry]]) -> list[_Entry]:
    """All entries of a list of one moment.

    Args:
        gate: where they are.
        listing: one of those below that take the gate alone.
    """
    found: list[_Entry] = []
    while page := gate.ask(page_of, listing, len(found)):
        found += page
        if len(page) < PAGE:
            break
    return found


def page_of(
    gate: LocalGate, listing: Callable[[LocalGate], Sequence[_Entry]], begin: int
) -> Sequence[_Entry]:
    """A page of a list; the first one copies it, and nobody else may ask for pages until the last one."""
    copy = gate.copy = gate.copy if begin else listing(gate)
    page: Sequence[_Entry] = copy[begin : begin + PAGE]
    if len(page) < PAGE:
        gate.copy = ()
    return page


# Of groups.


class GroupReading(NamedTuple):
    """The figures of one group and kind; rates in Milli per second, counts since the start."""

    key: GroupKey
    quota: Rates
    share: Rates
    admitted: Pair
    #: What was given back of it.
    returned: Pair
    #: Refused work in whole units since the start, by the level that refused and the dimension.
    refused: list[tuple[tuple[Level, Dimension], int]]
    #: The work that a shadow group would have refused; None for other groups.
    shadow_refused: Pair | None
    #: What was granted beyond its soft limit; None: it has none.
    over: Pair | None


def groups(gate: LocalGate, keys: Sequence[GroupKey]) -> list[GroupReading | None]:
    """[keys] the figures of groups; None for those that are not in use."""
    return [None if one is None else _group(one) for one in map(gate.state, keys)]


def _group(state: GroupState) -> GroupReading:
    return GroupReading(
        state.key,
        state.quota,
        state.share,
        state.counters.admitted,
        state.counters.returned,
        list(state.refused()),
        state.shadow_refused if state.shadow else None,
        None if state.soft is None else state.soft.shadow_refused,
    )


# Of names.


class Bucket(NamedTuple):
    """One bucket in whole units."""

    depth: float
    tokens: float


class Soft(NamedTuple):
    """A soft limit: its rates in Milli per second, whether the last charge was beyond it, and what was since the start."""

    share: Rates
    is_over: bool
    over: Pair


class LevelReading(NamedTuple):
    """A limit that requests have used; pairs are of messages and bytes."""

    share: Rates
    #: The topic's part of it, where the share is divided and the topic has one.
    part: Rates | None
    #: The buckets that decide; None where nothing is limited, or nothing asked yet.
    buckets: tuple[Bucket | None, Bucket | None]
    #: How long one message of one byte would wait.
    wait_ms: int
    #: Refused in the last minute.
    refused: tuple[Refusals, Refusals]
    #: What leases want and hold of it.
    leases: Load | None
    soft: Soft | None


class NameReading(NamedTuple):
    """What applies to a name; None for limits that no request has used."""

    limits: list[LevelReading | None]
    groups: list[LevelReading | None]
    #: What throttled the subscription lately.
    throttled: Throttled | None
    #: What was refused in the last minute because of the topic's backlog.
    blocked: tuple[Refusals, Refusals]


def name(
    gate: LocalGate,
    request: Request,
    limits: Sequence[LimitKey],
    groups: Sequence[GroupKey],
    now: Nanos,
) -> NameReading:
    """The limits and groups that apply to a name, as its next request would meet them."""
    topic, subscription = request.topic, request.subscription
    throttled = None
    if request.kind is Kind.DISPATCH and topic is not None and subscription is not None:
        throttled = gate.throttled.of(topic, subscription, now)
    return NameReading(
        [_level(gate, gate.limit(key), now) for key in limits],
        [_group_level(gate, key, topic, now) for key in groups],
        throttled,
        _refused(gate.blocked.recent(topic), now),
    )


def _group_level(
    gate: LocalGate, key: GroupKey, topic: str | None, now: Nanos
) -> LevelReading | None:
    """A group; where its share is divided, the topic's part decides, too."""
    state, split = gate.state(key), gate.split_of(key)
    reading = _level(gate, state, now)
    if reading is None or state is None:
        return None
    soft = state.soft
    if isinstance(soft, SoftState):
        reading = reading._replace(soft=Soft(soft.share, soft.is_over, soft.shadow_refused))
    if split is None:
        return reading
    part = split.look(topic, now)
    if part is None:
        return reading._replace(buckets=(None, None), wait_ms=0)
    wait_ms = max(reading.wait_ms, part.wait(1, 1, now)[0])
    return reading._replace(part=part.share, buckets=_buckets(part, now), wait_ms=wait_ms)


def _level(gate: LocalGate, level: LevelState | None, now: Nanos) -> LevelReading | None:
    if level is None:
        return None
    leased = gate.leases.table.loads.get(level)
    buckets, wait_ms = _buckets(level, now), level.wait(1, 1, now)[0]
    return LevelReading(
        level.share, None, buckets, wait_ms, _refused(level.refusals, now), leased, None
    )


def _buckets(level: LevelState, now: Nanos) -> tuple[Bucket | None, Bucket | None]:
    return _bucket(level, Dimension.MESSAGES, now), _bucket(level, Dimension.BYTES, now)


def _bucket(level: LevelState, dimension: Dimension, now: Nanos) -> Bucket | None:
    tokens = level.tokens(dimension, now)
    if tokens is None:
        return None
    return Bucket((level.share.of(dimension) or 0) * level.burst_ns / PICO, tokens / PICO)


def _refused(refusals: RecentRefusals | None, now: Nanos) -> tuple[Refusals, Refusals]:
    if refusals is None:
        return Refusals(), Refusals()
    return refusals.total(Dimension.MESSAGES, now), refusals.total(Dimension.BYTES, now)


def names_asked(gate: LocalGate) -> list[Name]:
    """Names requested since the policies came into force; a rarely requested one may be missing."""
    return gate.names_asked()


# Of throttled dispatch.


class Others(NamedTuple):
    """The subscriptions beyond the most that have counters."""

    #: All of them together; None while there are none.
    counts: Throttled | None
    #: Whether one was throttled lately, so that one without counters may have been.
    are_recent: bool
    #: Most subscriptions with counters.
    most: int


def all_throttled(gate: Gate, now: Nanos, topic: str | None = None) -> Iterator[Throttled]:
    """The counters of every subscription that was throttled lately, or of a topic's."""
    names = listed(gate, partial(throttled_names, topic=topic))
    for begin in range(0, len(names), THROTTLED_PAGE):
        counts = gate.ask(throttled, names[begin : begin + THROTTLED_PAGE], now)
        yield from filter(None, counts)


def throttled_names(gate: LocalGate, topic: str | None) -> list[tuple[str, str]]:
    """The topic and name of every subscription with counters, or of a topic's."""
    return gate.throttled.names(topic)


def throttled(
    gate: LocalGate, names: Sequence[tuple[str, str]], now: Nanos
) -> list[Throttled | None]:
    """[names] the counters of subscriptions; None for one that was not throttled lately."""
    return [gate.throttled.of(*one, now) for one in names]


def throttled_others(gate: LocalGate, now: Nanos) -> Others:
    """What the subscriptions beyond the most had."""
    table = gate.throttled
    return Others(table.other(now), table.has_others(now), table.most)


def throttled_partitions(gate: LocalGate, topic: str, now: Nanos) -> list[str]:
    """The partitions of a topic whose dispatch was throttled lately."""
    return gate.throttled.partitions_of(topic, now)


def subscriptions_read(gate: LocalGate) -> list[tuple[str, str]]:
    """Topics and subscriptions that were read, throttled or not."""
    return list(gate.throttled.read)


# Of the whole.


class Blocks(NamedTuple):
    """The topics whose backlogs block publishing."""

    topics: int
    #: Blocked requests since the start, by limit and whether the caller was asked to hold.
    requests: dict[tuple[QuotaType, bool], int]


class LeaseFigures(NamedTuple):
    """The leases of the daemon."""

    leases: int
    #: How often each event happened since the start.
    events: dict[LeaseEvent, int]


def blocks(gate: LocalGate) -> Blocks:
    """How many topics are blocked."""
    blocked = gate.blocked
    return Blocks(len(blocked), dict(blocked.requests))


def blocked_topics(gate: LocalGate, most: int) -> list[tuple[str, QuotaType]]:
    """The first topics that are blocked, at most so many, and by which limit."""
    some = zip(range(most), gate.blocked.items(), strict=False)
    return [(topic, why.quota_type) for _, (topic, why) in some]


def blocked_requests(gate: LocalGate) -> list[tuple[str, Counter[tuple[QuotaType, BacklogAction]]]]:
    """Blocked requests of topics since the start, by limit and its policy."""
    return [(topic, of.copy()) for topic, of in gate.blocked.requests_of.items()]


def leases(gate: LocalGate) -> LeaseFigures:
    """How many leases there are."""
    return LeaseFigures(len(gate.leases.table), gate.leases.events())


def leased(gate: LocalGate) -> list[tuple[GroupKey, Pair]]:
    """What leases hold of each group, in whole units."""
    loads = gate.leases.table.loads.items()
    groups = ((level.key, load) for level, load in loads if isinstance(level, GroupState))
    return [(key, load.held) for key, load in groups]


def ungoverned(gate: LocalGate) -> Ungoverned:
    """Requests decided without a limit since the start."""
    return gate.ungoverned()
