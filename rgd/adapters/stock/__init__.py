"""A stock Pulsar's policies: read through its admin API, and kept on disk.

Law: only this package knows how Pulsar writes them down; outwards it speaks `rgd.ports.stock`.

`client` asks and bounds what comes back, `answers` translates, `reader` walks over everything there
is, `store` keeps what was read last for the next start.
"""
