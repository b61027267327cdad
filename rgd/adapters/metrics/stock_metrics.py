"""The metrics of the exchange with stock Pulsar brokers; only with `pulsar` among `exchange.dialects`."""

from typing import Final

from rgd.adapters.metrics.metric import Fold, Metric, MetricType

STOCK_METRICS: Final = (
    Metric(
        "rgd_stock_reports_sent_total",
        MetricType.COUNTER,
        "Reports for stock brokers that this daemon had to send, those in the name of a dead daemon too.",
    ),
    Metric(
        "rgd_stock_reports_received_total",
        MetricType.COUNTER,
        "Reports of stock brokers that were read.",
    ),
    Metric(
        "rgd_stock_reports_dropped_total",
        MetricType.COUNTER,
        "Reports on the stock brokers' topic that were dropped: unreadable (by the fault), `overflow` of the "
        "queue, `unsent`.",
        ("reason",),
    ),
    Metric(
        "rgd_stock_clock_ahead_seconds",
        MetricType.GAUGE,
        "How far a stock broker's clock is ahead of this machine's (below 0: behind), by the publish times of its last "
        "reports. At two stock periods stock brokers ignore this daemon's reports.",
        ("broker",),
        fold=Fold.NONE,
    ),
    Metric(
        "rgd_stock_brokers_listed",
        MetricType.GAUGE,
        "Live stock brokers, as the admin API listed them last.",
    ),
    Metric(
        "rgd_stock_list_failures_total",
        MetricType.COUNTER,
        "Reads of the admin API's list of brokers that failed; brokers that left stay meanwhile.",
    ),
)
