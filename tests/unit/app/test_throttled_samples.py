"""PIP-406's metrics: names and labels to the letter, and the same figures as the counters.

Not covered: when a level counts (tests/unit/core/buckets/test_throttled.py).
"""

from collections.abc import Sequence

from prometheus_client import parser

from rgd.adapters.metrics.exposition import Exposition
from rgd.app.throttled_samples import throttled_samples
from rgd.core.bounds import BucketBounds
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.throttled import IDLE_NS, ThrottledTable
from rgd.core.gate.local import LocalGate
from rgd.core.units import Nanos
from rgd.ports.metrics import Sample
from tests.unit.core.values import ms

TOPIC = "persistent://acme/orders/eu-partition-0"
LABELS = {
    "cluster": "standalone",
    "tenant": "acme",
    "namespace": "acme/orders",
    "topic": TOPIC,
    "subscription": "audit",
}
#: Masks of the broker's limit on messages and of the group's on bytes.
BROKER, GROUP_BYTES = 1, 1 << 5


class Shown:
    """Shows a table's samples."""

    def __init__(
        self, table: ThrottledTable, now: Nanos, known: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._table, self._now, self._known = table, now, known

    def samples(self) -> list[Sample]:
        gate = LocalGate(BucketSettings(0, 0, 0))
        gate.throttled = self._table
        return list(throttled_samples(gate, self._known, "standalone", self._now))


async def scraped(
    table: ThrottledTable, now: Nanos, known: Sequence[tuple[str, str]] = ()
) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    body, _ = await Exposition(Shown(table, now, known)).render("")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(body.decode())
        for sample in family.samples
        if "dispatch_throttled" in sample.name
    }


def series(name: str, **more: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset((LABELS | more).items())


async def test_names_and_labels_are_those_of_the_pip_and_all_series_start_at_once() -> None:
    table = ThrottledTable()
    assert await scraped(table, ms(0)) == {}
    table.count((TOPIC, "audit"), BROKER, 60, 0, 250, ms(0))
    table.count((TOPIC, "audit"), BROKER | GROUP_BYTES, 60, 500, 250, ms(1000))
    events = {
        series(f"pulsar_subscription_dispatch_throttled_{unit}_events", reason=reason): 0.0
        for unit in ("msg", "bytes")
        for reason in ("broker", "resource_group", "topic", "subscription")
    }
    events[series("pulsar_subscription_dispatch_throttled_msg_events", reason="broker")] = 2
    events[
        series("pulsar_subscription_dispatch_throttled_bytes_events", reason="resource_group")
    ] = 1
    volume = "rgd_subscription_dispatch_throttled_total"
    assert await scraped(table, ms(9000)) == events | {
        series(volume, dimension="messages"): 120,
        series(volume, dimension="bytes"): 500,
        series("rgd_subscription_dispatch_throttled_seconds_total"): 0.5,
    }


async def test_a_known_subscription_has_all_its_series_with_0_before_anything_is_throttled() -> (
    None
):
    table = ThrottledTable()
    known = [(TOPIC, "audit"), (TOPIC, "audit")]
    shown = await scraped(table, ms(0), known)
    assert len(shown) == 11
    assert set(shown.values()) == {0.0}
    table.count((TOPIC, "audit"), BROKER, 60, 0, 250, ms(0))
    later = await scraped(table, ms(0), known)
    assert later.keys() == shown.keys()
    assert later[series("pulsar_subscription_dispatch_throttled_msg_events", reason="broker")] == 1


async def test_known_subscriptions_are_shown_up_to_the_most_that_have_counters() -> None:
    table = ThrottledTable(BucketBounds(throttled_max=2))
    shown = await scraped(table, ms(0), [(TOPIC, f"s{number}") for number in range(5)])
    assert len(shown) == 2 * 11


async def test_further_subscriptions_are_other_without_a_time() -> None:
    table = ThrottledTable(BucketBounds(throttled_max=1))
    for name in ("audit", "b", "c"):
        table.count((TOPIC, name), BROKER, 60, 0, 250, ms(0))
    shown = await scraped(table, ms(0), [(TOPIC, "c"), (TOPIC, "d")])
    other = dict.fromkeys(("tenant", "namespace", "topic", "subscription"), "other")
    events = "pulsar_subscription_dispatch_throttled_msg_events"
    assert shown[series(events, **other, reason="broker")] == 2
    assert shown[series(events, reason="broker")] == 1
    # Of "c" and "d" nobody knows whether they were throttled, until an hour after the last that was.
    assert len(shown) == 11 + 10
    later = await scraped(table, Nanos(IDLE_NS + ms(251)), [(TOPIC, "d")])
    assert later[series(events, subscription="d", reason="broker")] == 0
