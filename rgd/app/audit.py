"""Who changed what: one event of the daemon's log for each write that somebody asked for.

Law: it has the name of the caller's token and never the token; a write that failed has none, also where it comes into force later.
"""

from typing import Any

import structlog

from rgd.ports.door import CALLER

_log = structlog.get_logger("rgd.audit")


def tell_written(event: str, key: str, before: Any, after: Any) -> None:
    """Log a write; None: there is nothing."""
    _log.info(event, key=key, by=CALLER.get() or "anybody", before=before, after=after)
