"""A stock Pulsar's policies and backlogs: read through its admin API; policies are also stored on disk.

Law: only this package knows Pulsar's formats; its interfaces are `rgd.ports.stock` and
`rgd.ports.stock_backlogs`.

`client` makes bounded calls, `parts` makes many of them and survives those that fail. Policies:
`answers` converts, `reader` reads all of them, `store` keeps the last result for the next start.
Backlogs: `backlog_answers` converts, `backlog_reader` reads the own broker's topics and evicts there.
"""
