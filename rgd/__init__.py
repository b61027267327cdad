"""rgd, the resource-group daemon: one cluster-wide quota, held by every broker together.

One daemon runs beside each broker and answers "may I?" from token buckets in its own memory.
The daemons tell each other their usage, and each works out its own share of every quota: there is
no database and no leader. docs/architecture.md shows which package does what; this one imports
nothing, so that the simulator and Spark's executors load only the parts they use.
"""

from rgd.version import __version__

__all__ = ["__version__"]
