"""PIP-406's metrics of throttled dispatch, and the volume and time of it under rgd's own names.

Law: labels are as Pulsar writes them: `namespace` is `tenant/namespace`, `topic` the full name. All
series of a subscription start with its first throttled request and vanish together
(`rgd.core.buckets.throttled`), so that a rate has a beginning for each reason.
"""

from collections.abc import Iterator
from typing import Final

from rgd.core.buckets.throttled import DISPATCH_LEVELS, OTHER, Throttled, ThrottledTable
from rgd.core.policies.names import namespace_of_topic, tenant_of
from rgd.core.units import NS_PER_S, Dimension, Nanos
from rgd.ports.metrics import Sample

MESSAGES_EVENTS: Final = "pulsar_subscription_dispatch_throttled_msg_events"
BYTES_EVENTS: Final = "pulsar_subscription_dispatch_throttled_bytes_events"
VOLUME: Final = "rgd_subscription_dispatch_throttled_total"
TIME: Final = "rgd_subscription_dispatch_throttled_seconds_total"


def throttled_samples(table: ThrottledTable, cluster: str, now: Nanos) -> Iterator[Sample]:
    """The samples of every subscription that was throttled lately, one subscription at a time."""
    for name in table.names():
        counts = table.of(*name, now)
        if counts is not None:
            namespace = namespace_of_topic(counts.topic)
            yield from _samples(counts, (cluster, tenant_of(namespace), namespace, *name))
    other = table.other(now)
    if other is not None:
        # The time of many subscriptions is nobody's.
        yield from list(_samples(other, (cluster, *[OTHER] * 4)))[:-1]


def _samples(counts: Throttled, labels: tuple[str, ...]) -> Iterator[Sample]:
    for level, messages, size in zip(
        DISPATCH_LEVELS, counts.messages_events, counts.bytes_events, strict=True
    ):
        yield Sample(MESSAGES_EVENTS, (*labels, level), messages)
        yield Sample(BYTES_EVENTS, (*labels, level), size)
    yield Sample(VOLUME, (*labels, Dimension.MESSAGES), counts.messages)
    yield Sample(VOLUME, (*labels, Dimension.BYTES), counts.bytes)
    yield Sample(TIME, labels, counts.throttled_ns / NS_PER_S)
