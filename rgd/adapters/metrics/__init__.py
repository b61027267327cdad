"""What Prometheus sees of the daemon; the only package that knows prometheus_client.

`registry` declares every metric once (`metric` is one declaration, `backlog_metrics` has those of
backlogs), `labels` bounds how many series there can be, `series` folds and writes them, `exposition`
renders a scrape, `reference` writes docs/metrics.md. The figures themselves come through
`rgd.ports.metrics`.
"""
