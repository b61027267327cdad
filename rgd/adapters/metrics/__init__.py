"""What Prometheus sees of the daemon; the only package that knows prometheus_client.

`metrics.toml` declares every metric once, and `registry` reads it (`metric` is one declaration), `labels` bounds
how many series there can be, `series` folds and writes them, `exposition` renders a scrape. The figures themselves come
through `rgd.ports.metrics`.
"""
