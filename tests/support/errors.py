"""Internal errors for parts of a daemon that are tested without one."""

from rgd.app.containment import InternalErrors
from rgd.core.units import Nanos


def no_end() -> InternalErrors:
    """Notes what is met; what would end the daemon is not of interest."""
    return InternalErrors(lambda: Nanos(0), lambda _reason: None)
