"""The version of rgd, in one place.

The build reads it from this file without importing it, and the daemon tells it in its logs and
its `/healthz`. CHANGELOG.md says what changed between two of them.
"""

__version__ = "0.1.0"
