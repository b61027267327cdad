"""Short ways to make the core's values, for tests that state only what matters to them.

Rates are whole units per second here and `Milli` in the core; time is in milliseconds.
"""

from rgd.core.broker.rounds import Rounds
from rgd.core.buckets.level import BucketSettings
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.suppression import Suppression
from rgd.core.policies.model import GroupKey, Rate, Rates
from rgd.core.units import MILLI, NS_PER_MS, Kind, Nanos, Pair
from tests.support.columns import advertised_hash

NAMESPACE = "acme/orders"
TOPIC = "persistent://acme/orders/eu"

BUCKETS = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)


def ms(milliseconds: float) -> Nanos:
    """A moment."""
    return Nanos(round(milliseconds * NS_PER_MS))


def rate(units: float | None) -> Rate:
    """A rate, 0 included."""
    return None if units is None else round(units * MILLI)


def rates(messages: float | None = None, size: float | None = None) -> Rates:
    """Rates in both dimensions, 0 included."""
    return Rates(rate(messages), rate(size))


def key(group: str = "gold", kind: Kind = Kind.PUBLISH) -> GroupKey:
    """A group in a kind."""
    return GroupKey(group, kind)


def usage(
    wanted: float,
    admitted: float | None = None,
    *,
    group: str = "gold",
    kind: Kind = Kind.PUBLISH,
    size: float = 0,
    topics: int = 1,
) -> UsageRow:
    """A row; admitted is what was wanted unless told, bytes are admitted as wanted."""
    given = wanted if admitted is None else admitted
    return UsageRow(
        group=group,
        kind=kind,
        topics=topics,
        admitted=Pair(round(given * MILLI), round(size * MILLI)),
        wanted=Pair(round(wanted * MILLI), round(size * MILLI)),
    )


def report(
    broker: str,
    *rows: UsageRow,
    sequence: int = 1,
    incarnation: int = 1,
    full: bool = False,
    rows_hash: int | None = None,
    weight: int = 1000,
    policies_hash: int = 0,
) -> Report:
    """A report whose hash is that of its own rows unless told."""
    told = [row for row in rows if not row.is_idle]
    return Report(
        sender=Sender(broker, incarnation),
        sequence=sequence,
        period_ns=1_000_000_000,
        rows=UsageColumns.of(*rows),
        full=full,
        rows_hash=advertised_hash(told) if rows_hash is None else rows_hash,
        weight=weight,
        policies_hash=policies_hash,
    )


def advertised(by: Rounds | Suppression) -> UsageColumns:
    """All rows that are advertised and not taken back."""
    suppression = by.suppression if isinstance(by, Rounds) else by
    return suppression.advertised_at(suppression.advertised_slots())
