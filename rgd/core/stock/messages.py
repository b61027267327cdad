"""The usage reports that stock Pulsar brokers exchange, as values; `rgd.wire.pulsar_usage` encodes them.

Counts are totals of the stock period (`exchange.pulsar_period_s`), which no report states.
A group without publish and without dispatch means: unchanged since the last report.
"""

from dataclasses import dataclass

from rgd.core.units import Pair


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """One group's usage on one broker in one stock period."""

    group: str
    #: Whole units in the period; None: unchanged since the last report.
    publish: Pair | None = None
    dispatch: Pair | None = None
    #: Bytes stored; Pulsar declares it and never fills it.
    storage_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class StockReport:
    """One broker's report of a stock period (Pulsar's ResourceUsageInfo)."""

    #: The broker's service URL, such as `pulsar://host:6650`.
    broker: str
    usage: tuple[GroupUsage, ...] = ()
