"""The running daemon: clocks, sources of policies, tasks, and how they are wired.

Everything here may touch the world; every rule is in `rgd.core`.
"""
