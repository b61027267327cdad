"""The metrics of the exchange with stock Pulsar brokers; only with `pulsar` among `exchange.dialects`."""

from typing import Final

from rgd.adapters.metrics.metric import Fold, Metric

STOCK_METRICS: Final = (
    Metric(
        "rgd_stock_reports_sent_total",
        "Reports for stock brokers that this daemon had to send, those in the name of a dead daemon too.",
    ),
    Metric("rgd_stock_reports_received_total", "Reports of stock brokers that were read."),
    Metric(
        "rgd_stock_reports_dropped_total",
        "Reports on the stock brokers' topic that were dropped: unreadable (by the fault), `overflow` of the "
        "queue, `unsent`.",
        ("reason",),
    ),
    Metric(
        "rgd_stock_clock_ahead_seconds",
        "How far a stock broker's clock is ahead of this machine's (below 0: behind), by the publish times of its last "
        "reports. At two stock periods stock brokers ignore this daemon's reports.",
        ("broker",),
        fold=Fold.NONE,
    ),
    Metric("rgd_stock_brokers", "Stock brokers that take part in the exchange."),
    Metric(
        "rgd_stock_period_seconds",
        "Time between a stock broker's reports, the median of the last ones.",
        ("broker",),
        fold=Fold.MAX,
    ),
    Metric(
        "rgd_stock_period_differs",
        "1: a stock broker reports in another period than `exchange.pulsar_period_s`, so its rates are wrong here.",
    ),
    Metric(
        "rgd_stock_refused_total",
        "What was not taken in of stock brokers' reports because of a limit, by what: brokers, rows, or whole reports.",
        ("reason",),
    ),
    Metric("rgd_stock_brokers_listed", "Live stock brokers, as the admin API listed them last."),
    Metric(
        "rgd_stock_list_failures_total",
        "Reads of the admin API's list of brokers that failed; brokers that left stay meanwhile.",
    ),
)
