"""Explains why a name is limited or not: every limit that applies to it, in its present state.

Laws:

- The levels are those of the decision, in its order, and show what the next request would meet.
- Explaining creates no bucket, no chain and no counters, and takes no tokens.
- A limit that no request has used here has no share and no bucket yet; its view says so (`in_use`).

Each limit counts what it refused in the last minute (`rgd.core.buckets.recent_refusals`), for all
names that it governs. `rgd.cli.why` makes the text for people.
"""

from collections.abc import Iterator
from typing import Final

from rgd.core.backlog.model import QuotaType
from rgd.core.broker.broker import Broker
from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Level, Request
from rgd.core.buckets.level import GroupState, LevelState
from rgd.core.buckets.levels import LimitKey
from rgd.core.buckets.recent_refusals import RecentRefusals, Refusals, window_ns
from rgd.core.buckets.soft import SoftState
from rgd.core.buckets.throttled import DISPATCH_LEVELS
from rgd.core.exchange.usage_map import StoredRow
from rgd.core.policies.model import UNLIMITED, BacklogType, Group, GroupKey, Rate, Rates
from rgd.core.policies.precedence import (
    Scope,
    ScopedQuota,
    ScopedRates,
    backlog_quota,
    subscription_limit,
    topic_limit,
)
from rgd.core.shares.model import PPM
from rgd.core.units import NS_PER_S, Dimension, Kind, Nanos, to_units
from rgd.views.backlog import BlockedView, backlog_view
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
    levels = tuple(_levels(broker, name, now))
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
        backlog_refused_last_minute=None if blocked is None else _blocked_lately(broker, name, now),
        throttled=_throttled(broker, name, now),
    )


def _levels(broker: Broker, name: Request, now: Nanos) -> Iterator[LevelView]:
    """Every limit that applies, in the order of the decision."""
    snapshot, kind, topic = broker.sharing.snapshot, name.kind, name.topic
    limits, me = snapshot.limits, broker.settings.sender.broker
    by_broker = limits.broker.of(kind) or UNLIMITED
    yield from _limit(broker, name, Level.BROKER, ScopedRates(by_broker, Scope.BROKER, me), now)
    reached: dict[str, list[ScopeView]] = {}
    for group, scope, at in snapshot.attachments_of(name.namespace, topic):
        reached.setdefault(group, []).append(ScopeView(scope, at))
    for group, scopes in reached.items():
        if group in snapshot.groups:
            yield _group(broker, name, snapshot.groups[group], tuple(scopes), now)
    if topic is not None:
        yield from _limit(broker, name, Level.TOPIC, topic_limit(limits, topic, kind), now)
        if name.subscription is not None:
            by_subscription = subscription_limit(limits, topic, name.subscription, kind)
            yield from _limit(broker, name, Level.SUBSCRIPTION, by_subscription, now)


def _limit(
    broker: Broker, name: Request, level: Level, scoped: ScopedRates, now: Nanos
) -> Iterator[LevelView]:
    """The view of a limit that is not a group's, if there is such a limit."""
    rates, scope, at = scoped
    if rates.is_unlimited or scope is None:
        return
    topic = "" if level is Level.BROKER else name.topic or ""
    subscription = name.subscription or "" if level is Level.SUBSCRIPTION else ""
    state = broker.limiter.limit(LimitKey(name.kind, level, topic, subscription))
    messages, size = (
        _dimension(dimension, rates, now, share=rates, level=state) for dimension in Dimension
    )
    yield LevelView(
        level=level,
        group=None,
        set_at=(ScopeView(scope, at),),
        in_use=state is not None,
        state=None,
        blocked=None,
        shadow=None,
        policy=None,
        topic_split=None,
        messages=messages,
        bytes=size,
        retry_after_ms=_retry_after_ms(state, now),
        refused_last_minute=_refused_last_minute(broker, state, now),
        leases=_leases(broker, state),
    )


def _group(
    broker: Broker, name: Request, group: Group, set_at: tuple[ScopeView, ...], now: Nanos
) -> LevelView:
    """The view of a resource group; where its share is divided, the topic's part decides, too."""
    key = GroupKey(group.name, name.kind)
    state, split = broker.limiter.state(key), broker.limiter.split_of(key)
    part = None if split is None else split.look(name.topic, now)
    decides: LevelState | None = state if split is None else part
    row = broker.usage.rows(key).get(broker.settings.sender.broker)
    waits = 0 if decides is None else max(_retry_after_ms(one, now) for one in (state, decides))
    messages, size = (
        _dimension(
            dimension,
            group.rates(name.kind),
            now,
            share=UNLIMITED if state is None else state.share,
            part=None if part is None else part.share,
            level=decides,
            row=row,
        )
        for dimension in Dimension
    )
    return LevelView(
        level=Level.RESOURCE_GROUP,
        group=group.name,
        set_at=set_at,
        in_use=state is not None,
        state=broker.mode,
        blocked=group.blocked,
        shadow=group.shadow,
        policy=group.policy or broker.settings.policy,
        topic_split=group.topic_split or broker.settings.topic_split,
        messages=messages,
        bytes=size,
        retry_after_ms=0 if group.shadow else waits,
        refused_last_minute=_refused_last_minute(broker, state, now),
        leases=_leases(broker, state),
        soft=_soft(group, state),
    )


def _soft(group: Group, state: GroupState | None) -> SoftView | None:
    """The view of a group's soft limit; it has no rates before a request has used the group."""
    if group.soft_ppm is None:
        return None
    part = group.soft_ppm / PPM
    soft = None if state is None else state.soft
    if not isinstance(soft, SoftState):
        return SoftView(part, None, None, is_over=False, over_messages=0, over_bytes=0)
    rates = _units(soft.share.messages), _units(soft.share.bytes)
    return SoftView(part, *rates, soft.is_over, *soft.shadow_refused)


def _dimension(  # noqa: PLR0913 -- it fills a view of eight fields
    dimension: Dimension,
    quota: Rates,
    now: Nanos,
    *,
    share: Rates,
    level: LevelState | None,
    part: Rates | None = None,
    row: StoredRow | None = None,
) -> DimensionView:
    """The view of one dimension of a limit; `level` has the bucket that decides, if any."""
    depth = tokens = None
    if level is not None and (left := level.tokens(dimension, now)) is not None:
        depth = (level.share.of(dimension) or 0) * level.burst_ns / PICO
        tokens = left / PICO
    wanted = admitted = 0
    if row is not None:
        wanted, admitted = getattr(row.wanted, dimension), getattr(row.admitted, dimension)
    return DimensionView(
        quota=_units(quota.of(dimension)),
        share=_units(share.of(dimension)),
        part=None if part is None else _units(part.of(dimension)),
        depth=_rounded(depth),
        tokens=_rounded(tokens),
        wanted=None if row is None else to_units(wanted),
        admitted=None if row is None else to_units(admitted),
        refused=None if row is None else to_units(max(0, wanted - admitted)),
    )


def _leases(broker: Broker, level: LevelState | None) -> LeasesView | None:
    load = None if level is None else broker.leases.table.loads.get(level)
    if load is None:
        return None
    wants = RatesView(to_units(load.wants_messages), to_units(load.wants_bytes))
    return LeasesView(load.leases, wants, load.held_messages, load.held_bytes)


def _retry_after_ms(level: LevelState | None, now: Nanos) -> int:
    return 0 if level is None else level.wait(1, 1, now)[0]


def _refused_last_minute(
    broker: Broker, level: LevelState | None, now: Nanos
) -> RefusedLastMinuteView:
    return _lately(broker, None if level is None else level.refusals, now)


def _lately(broker: Broker, refusals: RecentRefusals | None, now: Nanos) -> RefusedLastMinuteView:
    return RefusedLastMinuteView(
        window_s=round(min(window_ns(now), now - broker.created_at) / NS_PER_S, 1),
        by_messages=_refused(refusals, Dimension.MESSAGES, now),
        by_bytes=_refused(refusals, Dimension.BYTES, now),
    )


def _refused(refusals: RecentRefusals | None, dimension: Dimension, now: Nanos) -> RefusedView:
    return RefusedView(*(Refusals() if refusals is None else refusals.total(dimension, now)))


def _throttled(broker: Broker, name: Request, now: Nanos) -> ThrottledView | None:
    """Every level that lowered the subscription's reads, not only the most stringent one."""
    if name.kind is not Kind.DISPATCH or name.topic is None or name.subscription is None:
        return None
    counts = broker.limiter.throttled.of(name.topic, name.subscription, now)
    if counts is None:
        return None
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


def _blocked_lately(broker: Broker, name: Request, now: Nanos) -> RefusedLastMinuteView:
    return _lately(broker, broker.limiter.blocked.recent(name.topic), now)


def _backlog_quotas(broker: Broker, name: Request) -> Iterator[BacklogQuotaView]:
    """The backlog quota of each type that applies to a name."""
    store, topic = broker.backlogs, name.topic
    is_known = topic is None or bool(store.get(topic) or store.partitions_of(topic))
    for which in BacklogType:
        scoped = backlog_quota(store.backlogs, name.namespace or "", topic, which)
        if scoped is None:
            default, me = store.settings.default, broker.settings.sender.broker
            scoped = ScopedQuota(default, Scope.BROKER, me)
        quota, scope, at = scoped
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


def _units(rate: Rate) -> float | None:
    return None if rate is None else to_units(rate)


def _rounded(units: float | None) -> float | None:
    return None if units is None else round(units, 3)
