"""PIP-406's metrics of throttled dispatch, and the volume and time of it under rgd's own names.

Law: labels are as Pulsar writes them: `namespace` is `tenant/namespace`, `topic` the full name. All series of
a subscription start together, with 0, once the daemon knows it: from a limit, a backlog or a read. So a rate has a
beginning for each reason, and `rate() == 0` finds those that nothing throttles. At most `BucketBounds.throttled_max`
subscriptions are shown. While others are counted together, nothing is known to be 0: then only those with counts are shown.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from rgd.core.buckets.throttled import DISPATCH_LEVELS, OTHER, Throttled
from rgd.core.gate import looks
from rgd.core.gate.port import Gate
from rgd.core.policies.names import namespace_of_topic, tenant_of
from rgd.core.units import NS_PER_S, Dimension, Nanos
from rgd.ports.metrics import Sample

MESSAGES_EVENTS: Final = "pulsar_subscription_dispatch_throttled_msg_events"
BYTES_EVENTS: Final = "pulsar_subscription_dispatch_throttled_bytes_events"
VOLUME: Final = "rgd_subscription_dispatch_throttled_total"
TIME: Final = "rgd_subscription_dispatch_throttled_seconds_total"


def throttled_samples(
    gate: Gate, known: Iterable[tuple[str, str]], cluster: str, now: Nanos
) -> Iterator[Sample]:
    """The samples of every subscription, one subscription at a time.

    Args:
        gate: knows what was throttled lately.
        known: topics and subscriptions that the daemon knows; some may come twice.
        cluster: the label.
        now: the current time.
    """
    shown: set[tuple[str, str]] = set()
    for counts in looks.all_throttled(gate, now):
        shown.add((counts.topic, counts.subscription))
        yield from _of_subscription(counts, cluster)
    others = gate.ask(looks.throttled_others, now)
    for topic, subscription in () if others.are_recent else known:
        if len(shown) >= others.most:
            break
        if (topic, subscription) not in shown:
            shown.add((topic, subscription))
            yield from _of_subscription(Throttled.nothing(topic, subscription), cluster)
    if others.counts is not None:
        # The time of many subscriptions is nobody's.
        yield from list(_samples(others.counts, (cluster, *[OTHER] * 4)))[:-1]


def _of_subscription(counts: Throttled, cluster: str) -> Iterator[Sample]:
    namespace = namespace_of_topic(counts.topic)
    name = (counts.topic, counts.subscription)
    return _samples(counts, (cluster, tenant_of(namespace), namespace, *name))


def _samples(counts: Throttled, labels: tuple[str, ...]) -> Iterator[Sample]:
    for level, messages, size in zip(
        DISPATCH_LEVELS, counts.messages_events, counts.bytes_events, strict=True
    ):
        yield Sample(MESSAGES_EVENTS, (*labels, level), messages)
        yield Sample(BYTES_EVENTS, (*labels, level), size)
    yield Sample(VOLUME, (*labels, Dimension.MESSAGES), counts.messages)
    yield Sample(VOLUME, (*labels, Dimension.BYTES), counts.bytes)
    yield Sample(TIME, labels, counts.throttled_ns / NS_PER_S)
