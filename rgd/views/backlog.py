"""What callers see of a topic's backlog: the last check's findings, quota, evictions.

Law: age, position and subscription are those of the last check (PIP-323), limits those in force
now. Nothing here changes the state.
"""

from dataclasses import dataclass

from rgd.core.backlog.model import Eviction
from rgd.core.backlog.quota import QuotaInForce, quota_in_force
from rgd.core.backlog.store import BacklogStore
from rgd.core.backlog.topic import TopicState
from rgd.core.buckets.blocked import retry_after_ms
from rgd.core.policies.model import BacklogAction
from rgd.core.units import NS_PER_S, Nanos


@dataclass(frozen=True, slots=True)
class PositionView:
    """An entry of a topic."""

    ledger: int
    entry: int


@dataclass(frozen=True, slots=True)
class EvictionView:
    """What to skip on one subscription (`rgd.core.backlog.model.Eviction`)."""

    topic: str
    subscription: str
    #: The first entry to keep: everything before it is to be acknowledged.
    skip_to: PositionView
    #: If set, only messages published before this time (ms since 1970) need to be skipped.
    published_before_ms: int | None
    #: `size`, `time` or both.
    exceeded: tuple[str, ...]
    #: `pushed` or `polled`.
    source: str


@dataclass(frozen=True, slots=True)
class BlockedView:
    """Why publishing is not granted."""

    #: `size` or `time`.
    quota_type: str
    #: Whether producers are asked to hold their messages; otherwise they are refused.
    held: bool
    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class OldestView:
    """The oldest unacknowledged message of a topic as the last check found it."""

    subscription: str
    position: PositionView
    #: None: not known.
    age_s: int | None
    time_ms: int | None
    #: Whose time and age it is: the `message`'s own, or its `ledger`'s end (a lower bound).
    age_of: str


@dataclass(frozen=True, slots=True)
class BacklogView:
    """A topic's backlog."""

    topic: str
    #: `pushed` or `polled`, and how long ago it was reported.
    source: str
    reported_ago_s: float
    #: The sum of the ledgers from the oldest unacknowledged message's to the current one.
    size_bytes: int
    #: The quota in force; -1 is unlimited.
    limit_size: int
    limit_time: int
    #: None: no check found a backlog.
    oldest: OldestView | None
    blocked: BlockedView | None
    evictions: tuple[EvictionView, ...]


def backlog_view(store: BacklogStore, topic: str, now: Nanos) -> BacklogView | None:
    """A topic's backlog; None if it is not known."""
    state = store.get(topic)
    if state is None:
        return None
    quota = quota_of(store, topic)
    return BacklogView(
        topic=topic,
        source=state.report.source,
        reported_ago_s=round((now - state.received_at) / NS_PER_S, 3),
        size_bytes=size_bytes(state),
        limit_size=quota.limit_bytes,
        limit_time=quota.limit_s,
        oldest=_oldest(state),
        blocked=blocked_view(state, now),
        evictions=tuple(map(_eviction, state.evictions)),
    )


def quota_of(store: BacklogStore, topic: str) -> QuotaInForce:
    """The quota in force for a topic."""
    return quota_in_force(store.backlogs, topic, store.settings.default)


def size_bytes(state: TopicState) -> int:
    """The size of a topic's backlog, as it was reported."""
    return 0 if state.oldest is None else state.oldest.size_bytes


def age_s(state: TopicState) -> int:
    """The age at the last check in whole seconds; -1 if there is no backlog, or it is not known."""
    checked = state.checked
    return -1 if checked is None or checked.age_ms is None else checked.age_ms // 1000


def blocked_view(state: TopicState, now: Nanos) -> BlockedView | None:
    """Why publishing to a topic is not granted; None if it is."""
    why = state.blocked
    if why is None:
        return None
    is_held = why.action is BacklogAction.HOLD and now < why.held_until
    return BlockedView(why.quota_type, is_held, retry_after_ms(why, now))


def _eviction(one: Eviction) -> EvictionView:
    return EvictionView(
        one.topic,
        one.subscription,
        PositionView(*one.to),
        one.published_before_ms,
        one.exceeded,
        one.source,
    )


def _oldest(state: TopicState) -> OldestView | None:
    checked = state.checked
    if checked is None:
        return None
    return OldestView(
        subscription=checked.subscription,
        position=PositionView(*checked.position),
        age_s=None if checked.age_ms is None else checked.age_ms // 1000,
        time_ms=checked.time_ms,
        age_of="message" if checked.is_precise else "ledger",
    )
