"""What Prometheus sees of the daemon; the only package that knows prometheus_client.

`registry` declares every metric once, `labels` bounds how many series there can be, `exposition`
renders a scrape, `reference` writes docs/metrics.md. The figures themselves come through
`rgd.ports.metrics`.
"""
