"""The parts of the live view that are not rows: members with their ages, backlogs.

Law: as in `rgd.views.model`; each is of a bounded size, whatever there is.
"""

from collections.abc import Mapping
from typing import Final

from rgd.core.broker.broker import Broker
from rgd.core.gate import looks
from rgd.core.units import NS_PER_S, Nanos
from rgd.views.backlog import size_bytes
from rgd.views.live_model import BacklogsView, BlockedTopicView, GoneView, MembersView, MemberView
from rgd.views.members import broker_views

#: Members and blocked topics that are shown; all are counted.
MEMBERS_MAX: Final = 200
BLOCKED_MAX: Final = 20

#: A member without a message for so many of its rounds is silent: it sends one in each.
SILENT_ROUNDS: Final = 1.5


def members_view(broker: Broker, now: Nanos, gone: Mapping[str, Nanos]) -> MembersView:
    """The members of the exchange.

    Args:
        broker: its state is read.
        now: for the ages.
        gone: brokers that are no members any more, and since when.
    """
    me, stock = broker.settings.sender.broker, broker.stock.members
    names = sorted({me, *broker.peers.names(), *stock.names()})
    silent = dict.fromkeys(name for name in names if _is_silent(broker, name, now))
    shown = [*silent, *(name for name in names if name not in silent)][:MEMBERS_MAX]
    views = broker_views(broker, now, shown)
    latest = sorted(gone.items(), key=lambda one: -one[1])
    return MembersView(
        members=tuple(
            MemberView(
                broker=view.broker,
                implementation=view.implementation,
                self=view.self,
                since_s=view.since_s,
                age_s=view.age_s,
                rows=view.rows,
                silent=view.broker in silent,
                silent_after_s=_silent_after_ns(broker, view.broker) / NS_PER_S,
            )
            for view in views
        ),
        total=len(names),
        silent=len(silent),
        expected=broker.settings.expected_brokers,
        gone=tuple(GoneView(name, round((now - at) / NS_PER_S, 1)) for name, at in latest),
    )


def _is_silent(broker: Broker, name: str, now: Nanos) -> bool:
    member = broker.peers.get(name) or broker.stock.members.get(name)
    return member is not None and now - member.received_at > _silent_after_ns(broker, name)


def _silent_after_ns(broker: Broker, name: str) -> float:
    is_stock = broker.peers.get(name) is None and broker.stock.members.get(name) is not None
    settings = broker.settings
    return SILENT_ROUNDS * (settings.stock_period_ns if is_stock else settings.round_ns)


def backlogs_view(broker: Broker) -> BacklogsView:
    """The backlogs that this daemon knows of."""
    store, some = broker.backlogs, []
    for topic, quota_type in broker.gate.ask(looks.blocked_topics, BLOCKED_MAX):
        state = store.get(topic)
        size = 0 if state is None else size_bytes(state)
        some.append(BlockedTopicView(topic, quota_type, size))
    blocked = broker.gate.ask(looks.blocks).topics
    return BacklogsView(len(store), blocked, len(store.evicting()), tuple(some))
