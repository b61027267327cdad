"""Explains why a name is limited or not: every limit that applies to it, in its present state.

Laws:

- The levels are those of the decision, in its order, and show what the next request would meet.
- All that is read of the gate is read in one look (`rgd.core.gate.looks.name`), which creates and takes nothing.
- A limit that no request has used here has no share and no bucket yet; its view says so (`in_use`).

Each limit counts what it refused in the last minute (`rgd.core.buckets.recent_refusals`), for all
names that it governs. `rgd.cli.why` makes the text for people.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from rgd.core.backlog.model import QuotaType
from rgd.core.broker.broker import Broker
from rgd.core.buckets.decision import Level, Request
from rgd.core.buckets.levels import LimitKey
from rgd.core.buckets.recent_refusals import Refusals, window_ns
from rgd.core.buckets.throttled import DISPATCH_LEVELS, Throttled
from rgd.core.exchange.rows import UsageRow
from rgd.core.gate import looks
from rgd.core.gate.looks import LevelReading
from rgd.core.policies.model import UNLIMITED, BacklogType, Group, GroupKey, Rates
from rgd.core.policies.precedence import (
    Scope,
    Scoped,
    backlog_quota,
    subscription_limit,
    topic_limit,
)
from rgd.core.shares.model import PPM
from rgd.core.units import NS_PER_S, Dimension, Kind, Nanos, to_units
from rgd.views.backlog import BlockedView, backlog_view
from rgd.views.groups import units_of
from rgd.views.model import (
    BacklogQuotaView,
    DimensionView,
    ExplainView,
    LeasesView,
    LevelView,
    LimitedByView,
    MissingGroupView,
    RatesView,
    RefusedLastMinuteView,
    RefusedView,
    ScopeView,
    SoftView,
    ThrottledLevelView,
    ThrottledView,
)

_LEVELS: Final = tuple(Level)
_TYPES: Final = {QuotaType.SIZE: Dimension.BYTES, QuotaType.TIME: None}


def explain(broker: Broker, name: Request, now: Nanos) -> ExplainView:
    """Explain why a name is limited or not.

    Args:
        broker: the broker whose state is explained.
        name: kind and namespace, perhaps with topic and subscription.
        now: the current time.
    """
    assert name.namespace is not None, "a name has a namespace"
    snapshot = broker.sharing.snapshot
    limits, groups = list(_limits(broker, name)), _groups(broker, name)
    keys = [GroupKey(group.name, name.kind) for group, _ in groups]
    read = broker.gate.ask(looks.name, name, [key for key, _ in limits], keys, now)
    of_limits = map(partial(_limit, broker, now), limits, read.limits)
    of_groups = map(partial(_group, broker, now), groups, keys, read.groups)
    # The limits and the groups each have this order; it is kept.
    levels = tuple(sorted((*of_limits, *of_groups), key=lambda one: _LEVELS.index(one.level)))
    backlog = None if name.topic is None else backlog_view(broker.backlogs, name.topic, now)
    blocked = None if backlog is None or name.kind is Kind.DISPATCH else backlog.blocked
    return ExplainView(
        broker=broker.settings.sender.broker,
        kind=name.kind,
        namespace=name.namespace,
        topic=name.topic,
        subscription=name.subscription,
        governed=bool(levels) or blocked is not None,
        limited_by=_limited_by(levels) if blocked is None else _by_backlog(blocked),
        levels=levels,
        missing_groups=tuple(
            MissingGroupView(group, ScopeView(scope, at))
            for group, scope, at in snapshot.attachments_of(name.namespace, name.topic)
            if group not in snapshot.groups
        ),
        backlog_quotas=tuple(_backlog_quotas(broker, name)),
        backlog=backlog,
        backlog_refused_last_minute=None if blocked is None else _lately(broker, read.blocked, now),
        throttled=None if read.throttled is None else _throttled(read.throttled),
    )


def _limits(broker: Broker, name: Request) -> Iterator[tuple[LimitKey, Scoped[Rates]]]:
    """The limits that apply and are not a group's."""
    limits, kind, topic = broker.sharing.snapshot.limits, name.kind, name.topic
    by_broker, me = limits.broker.of(kind) or UNLIMITED, broker.settings.sender.broker
    found: list[tuple[LimitKey, Scoped[Rates] | None]] = [
        (LimitKey(kind, Level.BROKER), Scoped(by_broker, Scope.BROKER, me))
    ]
    if topic is not None:
        found.append((LimitKey(kind, Level.TOPIC, topic), topic_limit(limits, topic, kind)))
        if (subscription := name.subscription) is not None:
            key = LimitKey(kind, Level.SUBSCRIPTION, topic, subscription)
            found.append((key, subscription_limit(limits, topic, subscription, kind)))
    for key, scoped in found:
        if scoped is not None and not scoped.value.is_unlimited:
            yield key, scoped


def _groups(broker: Broker, name: Request) -> list[tuple[Group, list[ScopeView]]]:
    """The groups that apply, and where each is attached."""
    snapshot = broker.sharing.snapshot
    reached: dict[str, list[ScopeView]] = {}
    for group, scope, at in snapshot.attachments_of(name.namespace, name.topic):
        reached.setdefault(group, []).append(ScopeView(scope, at))
    groups = snapshot.groups
    return [(groups[group], scopes) for group, scopes in reached.items() if group in groups]


def _limit(
    broker: Broker, now: Nanos, limit: tuple[LimitKey, Scoped[Rates]], read: LevelReading | None
) -> LevelView:
    """The view of a limit that is not a group's."""
    key, (rates, scope, at) = limit
    messages, size = (_dimension(dimension, rates, rates, read) for dimension in Dimension)
    return LevelView(
        level=key.level,
        group=None,
        set_at=(ScopeView(scope, at),),
        in_use=read is not None,
        messages=messages,
        bytes=size,
        retry_after_ms=0 if read is None else read.wait_ms,
        refused_last_minute=_lately(broker, read and read.refused, now),
        leases=_leases(read),
    )


def _group(
    broker: Broker,
    now: Nanos,
    attached: tuple[Group, list[ScopeView]],
    key: GroupKey,
    read: LevelReading | None,
) -> LevelView:
    """The view of a resource group; where its share is divided, the topic's part decides, too."""
    group, set_at = attached
    row = broker.usage.rows(key).get(broker.settings.sender.broker)
    share = UNLIMITED if read is None else read.share
    messages, size = (
        _dimension(dimension, group.rates(key.kind), share, read, row) for dimension in Dimension
    )
    return LevelView(
        level=Level.RESOURCE_GROUP,
        group=group.name,
        set_at=tuple(set_at),
        in_use=read is not None,
        state=broker.mode,
        blocked=group.blocked,
        shadow=group.shadow,
        policy=group.policy or broker.settings.policy,
        topic_split=group.topic_split or broker.settings.topic_split,
        messages=messages,
        bytes=size,
        retry_after_ms=0 if read is None or group.shadow else read.wait_ms,
        refused_last_minute=_lately(broker, read and read.refused, now),
        leases=_leases(read),
        soft=_soft(group, read),
    )


def _soft(group: Group, read: LevelReading | None) -> SoftView | None:
    """The view of a group's soft limit; it has no rates before a request has used the group."""
    if group.soft_ppm is None:
        return None
    part = group.soft_ppm / PPM
    soft = None if read is None else read.soft
    if soft is None:
        return SoftView(part, None, None, is_over=False, over_messages=0, over_bytes=0)
    rates = units_of(soft.share.messages), units_of(soft.share.bytes)
    return SoftView(part, *rates, soft.is_over, *soft.over)


def _dimension(
    dimension: Dimension,
    quota: Rates,
    share: Rates,
    read: LevelReading | None,
    row: UsageRow | None = None,
) -> DimensionView:
    """The view of one dimension of a limit."""
    part = bucket = None
    if read is not None:
        part, bucket = read.part, read.buckets[dimension is Dimension.BYTES]
    wanted = admitted = 0
    if row is not None:
        wanted, admitted = getattr(row.wanted, dimension), getattr(row.admitted, dimension)
    return DimensionView(
        quota=units_of(quota.of(dimension)),
        share=units_of(share.of(dimension)),
        part=None if part is None else units_of(part.of(dimension)),
        depth=None if bucket is None else round(bucket.depth, 3),
        tokens=None if bucket is None else round(bucket.tokens, 3),
        wanted=None if row is None else to_units(wanted),
        admitted=None if row is None else to_units(admitted),
        refused=None if row is None else to_units(max(0, wanted - admitted)),
    )


def _leases(read: LevelReading | None) -> LeasesView | None:
    if read is None or read.leases is None:
        return None
    load = read.leases
    return LeasesView(load.leases, RatesView(*map(to_units, load.wants)), *load.held)


def _lately(
    broker: Broker, refused: tuple[Refusals, Refusals] | None, now: Nanos
) -> RefusedLastMinuteView:
    by_messages, by_bytes = refused or (Refusals(), Refusals())
    return RefusedLastMinuteView(
        window_s=round(min(window_ns(now), now - broker.created_at) / NS_PER_S, 1),
        by_messages=RefusedView(*by_messages),
        by_bytes=RefusedView(*by_bytes),
    )


def _throttled(counts: Throttled) -> ThrottledView:
    """Every level that lowered the subscription's reads, not only the most stringent one."""
    events = zip(DISPATCH_LEVELS, counts.messages_events, counts.bytes_events, strict=True)
    return ThrottledView(
        levels=tuple(ThrottledLevelView(*of_level) for of_level in events),
        messages=counts.messages,
        bytes=counts.bytes,
        throttled_s=round(counts.throttled_ns / NS_PER_S, 3),
    )


def _limited_by(levels: tuple[LevelView, ...]) -> LimitedByView | None:
    """The limit and dimension that refused most in the last minute; of equals the first."""
    most, found = 0, None
    for level in levels:
        lately = level.refused_last_minute
        for dimension, refused in (
            (Dimension.MESSAGES, lately.by_messages),
            (Dimension.BYTES, lately.by_bytes),
        ):
            if refused.requests > most:
                most = refused.requests
                found = LimitedByView(level.level, level.group, dimension)
    return found


def _by_backlog(blocked: BlockedView) -> LimitedByView:
    return LimitedByView(Level.BACKLOG, None, _TYPES[QuotaType(blocked.quota_type)])


def _backlog_quotas(broker: Broker, name: Request) -> Iterator[BacklogQuotaView]:
    """The backlog quota of each type that applies to a name."""
    store, topic, me = broker.backlogs, name.topic, broker.settings.sender.broker
    is_known = topic is None or bool(store.get(topic) or store.partitions_of(topic))
    for which in BacklogType:
        found = backlog_quota(store.backlogs, name.namespace or "", topic, which)
        quota, scope, at = found or Scoped(store.settings.default, Scope.BROKER, me)
        is_size = which is BacklogType.SIZE
        view = BacklogQuotaView(
            type=which,
            size_bytes=quota.size_bytes if is_size and quota.size_bytes >= 0 else None,
            age_s=quota.age_s if not is_size and quota.age_s > 0 else None,
            action=quota.action,
            set_at=ScopeView(scope, at),
            enforced=is_known,
        )
        # An unlimited default says nothing.
        if scope is not Scope.BROKER or view.size_bytes is not None or view.age_s is not None:
            yield view
