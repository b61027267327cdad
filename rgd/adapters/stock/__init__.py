"""A stock Pulsar's policies: read through its admin API, and stored on disk.

Law: only this package knows Pulsar's formats; its interface is `rgd.ports.stock`.

`client` makes bounded calls, `answers` converts, `reader` reads all policies, and `store` keeps
the last result for the next start.
"""
