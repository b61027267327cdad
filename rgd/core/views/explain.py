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

from rgd.core.broker.broker import Broker
from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Level, Request
from rgd.core.buckets.level import GroupKey, LevelState
from rgd.core.buckets.recent_refusals import RecentRefusals, Refusals, window_ns
from rgd.core.exchange.usage_map import StoredRow
from rgd.core.policies.model import UNLIMITED, BacklogQuotas, BacklogType, Group, Rate, Rates
from rgd.core.policies.precedence import Place, Said, names_of, subscription_limit, topic_limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_S, Dimension, Nanos, to_units
from rgd.core.views.model import (
    BacklogQuotaView,
    DimensionView,
    ExplainView,
    LevelView,
    LimitedByView,
    MissingGroupView,
    RefusedLastMinuteView,
    RefusedView,
    SaidView,
)

#: Backlog quotas are stored and shown; this version does not act on them.
BACKLOG_ENFORCED: Final = False


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
    return ExplainView(
        broker=broker.settings.sender.broker,
        kind=name.kind,
        namespace=name.namespace,
        topic=name.topic,
        subscription=name.subscription,
        governed=bool(levels),
        limited_by=_limited_by(levels),
        levels=levels,
        missing_groups=tuple(
            MissingGroupView(group, SaidView(place, at))
            for group, place, at in snapshot.attachments_of(name.namespace, name.topic)
            if group not in snapshot.groups
        ),
        backlog_quotas=tuple(_backlog_quotas(snapshot, name)),
    )


def _levels(broker: Broker, name: Request, now: Nanos) -> Iterator[LevelView]:
    """Every limit that applies, in the order of the decision."""
    snapshot, kind, topic = broker.sharing.snapshot, name.kind, name.topic
    limits, me = snapshot.limits, broker.settings.sender.broker
    by_broker = limits.broker.of(kind) or UNLIMITED
    yield from _limit(broker, name, Level.BROKER, Said(by_broker, Place.BROKER, me), now)
    reached: dict[str, list[SaidView]] = {}
    for group, place, at in snapshot.attachments_of(name.namespace, topic):
        reached.setdefault(group, []).append(SaidView(place, at))
    for group, said in reached.items():
        if group in snapshot.groups:
            yield _group(broker, name, snapshot.groups[group], tuple(said), now)
    if topic is not None:
        yield from _limit(broker, name, Level.TOPIC, topic_limit(limits, topic, kind), now)
        if name.subscription is not None:
            by_subscription = subscription_limit(limits, topic, name.subscription, kind)
            yield from _limit(broker, name, Level.SUBSCRIPTION, by_subscription, now)


def _limit(
    broker: Broker, name: Request, level: Level, said: Said, now: Nanos
) -> Iterator[LevelView]:
    """The view of a limit that is not a group's, if there is such a limit."""
    rates, place, at = said
    if rates.is_unlimited or place is None:
        return
    state = broker.limiter.limit(
        level,
        name.kind,
        topic=name.topic or "" if level is not Level.BROKER else "",
        subscription=name.subscription or "" if level is Level.SUBSCRIPTION else "",
    )
    messages, size = (
        _dimension(dimension, rates, now, share=rates, level=state) for dimension in Dimension
    )
    yield LevelView(
        level=level,
        group=None,
        said=(SaidView(place, at),),
        in_use=state is not None,
        state=None,
        blocked=None,
        shadow=None,
        policy=None,
        topic_split=None,
        messages=messages,
        bytes=size,
        retry_after_ms=_retry_after_ms(state, now),
        cut_last_minute=_cut_last_minute(broker, state, now),
    )


def _group(
    broker: Broker, name: Request, group: Group, said: tuple[SaidView, ...], now: Nanos
) -> LevelView:
    """The view of a resource group; the topic's part decides where the share is divided."""
    key = GroupKey(group.name, name.kind)
    state, split = broker.limiter.state(key), broker.limiter.split_of(key)
    part = None if split is None else split.look(name.topic, now)
    decides: LevelState | None = state if split is None else part
    row = broker.usage.rows(key).get(broker.settings.sender.broker)
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
        said=said,
        in_use=state is not None,
        state=broker.mode,
        blocked=group.blocked,
        shadow=group.shadow,
        policy=group.policy or broker.settings.policy,
        topic_split=group.topic_split or broker.settings.topic_split,
        messages=messages,
        bytes=size,
        retry_after_ms=0 if group.shadow else _retry_after_ms(decides, now),
        cut_last_minute=_cut_last_minute(broker, state, now),
    )


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


def _retry_after_ms(level: LevelState | None, now: Nanos) -> int:
    return 0 if level is None else level.wait(1, 1, now)[0]


def _cut_last_minute(broker: Broker, level: LevelState | None, now: Nanos) -> RefusedLastMinuteView:
    refusals = None if level is None else level.refusals
    return RefusedLastMinuteView(
        window_s=round(min(window_ns(now), now - broker.created_at) / NS_PER_S, 1),
        by_messages=_cut(refusals, Dimension.MESSAGES, now),
        by_bytes=_cut(refusals, Dimension.BYTES, now),
    )


def _cut(refusals: RecentRefusals | None, dimension: Dimension, now: Nanos) -> RefusedView:
    return RefusedView(*(Refusals() if refusals is None else refusals.total(dimension, now)))


def _limited_by(levels: tuple[LevelView, ...]) -> LimitedByView | None:
    """The limit and dimension that refused most in the last minute; of equals the first."""
    most, found = 0, None
    for level in levels:
        lately = level.cut_last_minute
        for dimension, cut in (
            (Dimension.MESSAGES, lately.by_messages),
            (Dimension.BYTES, lately.by_bytes),
        ):
            if cut.requests > most:
                most = cut.requests
                found = LimitedByView(level.level, level.group, dimension)
    return found


def _backlog_quotas(snapshot: PolicySnapshot, name: Request) -> Iterator[BacklogQuotaView]:
    """The backlog quota of each type that applies to a name: the topic's, else the namespace's."""
    backlogs = snapshot.backlogs
    places: list[tuple[BacklogQuotas | None, Place, str]] = [
        (backlogs.topics.get(topic), Place.TOPIC, topic)
        for topic in (names_of(name.topic) if name.topic is not None else ())
    ]
    namespace = name.namespace or ""
    places.append((backlogs.namespaces.get(namespace), Place.NAMESPACE, namespace))
    for which in BacklogType:
        for quotas, place, at in places:
            quota = None if quotas is None else quotas.of(which)
            if quota is None:
                continue
            is_size = which is BacklogType.SIZE
            yield BacklogQuotaView(
                type=which,
                size_bytes=quota.size_bytes if is_size and quota.size_bytes >= 0 else None,
                age_s=quota.age_s if not is_size and quota.age_s > 0 else None,
                action=quota.action,
                said=SaidView(place, at),
                enforced=BACKLOG_ENFORCED,
            )
            break


def _units(rate: Rate) -> float | None:
    return None if rate is None else to_units(rate)


def _rounded(units: float | None) -> float | None:
    return None if units is None else round(units, 3)
