"""What people see of a broker's state: plain values, read and never kept.

Law: a view is made from the core's own state when it is asked for, so it
cannot be out of date, and changes nothing.
"""

from collections.abc import Collection

from rgd.core.broker.broker import Broker
from rgd.core.broker.mode import Mode
from rgd.core.buckets.level import GroupKey
from rgd.core.errors import UnknownGroup
from rgd.core.policies.model import Attachments, OnUnknown, Rates
from rgd.core.units import NS_PER_S, Kind, Nanos, Pair, to_units
from rgd.ports.daemon import BrokerView, GroupView, Health, KindView, RatesView, RowView


def group_view(
    broker: Broker, name: str, now: Nanos, attached: Attachments | None = None
) -> GroupView:
    """One group with its rows; what is attached to it is looked for if it is not given.

    Raises:
        UnknownGroup: there is no such group.
    """
    book = broker.sharing.book
    group = book.groups.get(name)
    if group is None:
        raise UnknownGroup(name)
    if attached is None:
        attached = book.attached_to(name)
    return GroupView(
        group=name,
        blocked=group.blocked,
        shadow=group.shadow,
        policy=group.policy or broker.settings.policy,
        topic_split=group.topic_split or broker.settings.topic_split,
        state=broker.mode,
        publish=_kind_view(broker, GroupKey(name, Kind.PUBLISH), now),
        dispatch=_kind_view(broker, GroupKey(name, Kind.DISPATCH), now),
        tenants=tuple(attached.tenants),
        namespaces=tuple(attached.namespaces),
        topics=tuple(attached.topics),
    )


def broker_views(broker: Broker, now: Nanos, among: Collection[str]) -> tuple[BrokerView, ...]:
    """The members known among these names, this one too, by name."""
    me = broker.settings.speaker.broker
    own = BrokerView(
        broker=me,
        implementation="rgd",
        self=True,
        since_s=_seconds(now - broker.created_at),
        age_s=0.0,
        sequence=broker.sequence,
        rows=broker.usage.count_of(me),
    )
    views = [own] if me in among else []
    for name in among:
        peer = broker.peers.get(name)
        if peer is None:
            continue
        views.append(
            BrokerView(
                broker=name,
                implementation="rgd",
                self=False,
                since_s=_seconds(now - peer.since),
                age_s=_seconds(now - peer.heard_at),
                sequence=peer.sequence,
                rows=broker.usage.count_of(name),
            )
        )
    return tuple(sorted(views, key=lambda view: view.broker))


def health(broker: Broker, *, is_draining: bool, notes: tuple[str, ...]) -> Health:
    """Whether shares are known, and what is degraded.

    While the exchange cannot be reached the daemon stays ready: an outage of
    Pulsar must not take every local endpoint away (design 3).
    """
    if is_draining:
        return Health(ready=False, degraded=("draining", *notes))
    degraded = list(notes)
    unknown = broker.limiter.unknown
    if unknown is not None:
        told = "refused" if unknown is OnUnknown.DENY else "granted"
        degraded.insert(0, f"no policies are known: every request is {told} (policies.unknown)")
    if broker.own_name.trouble is not None:
        taken = f"name conflict: {broker.own_name.trouble}; granting from the floor until it ends"
        return Health(ready=False, degraded=(taken, *degraded))
    if broker.mode.is_isolated:
        degraded.append(f"exchange unreachable: {broker.mode} shares")
    if broker.differing:
        names = ", ".join(sorted(broker.differing))
        degraded.append(f"policies differ from those of {names}")
    if not broker.is_past_start:
        return Health(ready=False, degraded=("starting: shares are not known yet", *degraded))
    if broker.mode is Mode.STARTING:
        degraded.append("exchange never reached: granting from the floor")
    return Health(ready=unknown is not OnUnknown.DENY, degraded=tuple(degraded))


def _kind_view(broker: Broker, key: GroupKey, now: Nanos) -> KindView:
    usage = broker.usage.rows(key)
    shares = broker.shares(key)
    me = broker.settings.speaker.broker
    rows = []
    for name, row in sorted(usage.items()):
        peer = broker.peers.get(name)
        rows.append(
            RowView(
                broker=name,
                admitted=_pair_view(row.admitted),
                wanted=_pair_view(row.wanted),
                topics=row.topics,
                age_s=0.0 if peer is None else _seconds(now - peer.heard_at),
                share=_rates_view(shares.get(name, Rates(0, 0))),
            )
        )
    state = broker.limiter.state(key)
    share = state.share if state is not None else shares[me]
    return KindView(
        quota=_rates_view(broker.sharing.quota(key)), share=_rates_view(share), rows=tuple(rows)
    )


def _rates_view(rates: Rates) -> RatesView:
    return RatesView(
        None if rates.messages is None else to_units(rates.messages),
        None if rates.bytes is None else to_units(rates.bytes),
    )


def _pair_view(pair: Pair) -> RatesView:
    return RatesView(to_units(pair.messages), to_units(pair.bytes))


def _seconds(nanos: int) -> float:
    return round(nanos / NS_PER_S, 3)
