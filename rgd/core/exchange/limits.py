"""Limits of the exchange that settings are held to; in a module that needs no numpy, because the gate reads settings, too."""

from typing import Final

#: Most peers by default; beyond it a new name becomes a member only after another one is removed.
PEERS_MAX: Final = 1_000

#: Most shards (`exchange.shards`). Each has a topic, a reader and a producer in every daemon that uses it.
SHARDS_MAX: Final = 64
