"""Structured logs: one event, one short verb phrase, fixed keys; JSON in a pipe.

Law: no secret reaches a log. Values under a secret's key, credentials in a URL
and bearer tokens are replaced before anything is rendered. Log lines of libraries
that use the standard library are treated the same.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import structlog
from structlog.typing import Processor

from rgd.app.events import add_code
from rgd.text import without_credentials

_SECRET_KEYS: Final = re.compile(r"token|password|secret|authorization|credential", re.IGNORECASE)
_BEARER: Final = re.compile(r"(?i)(bearer\s+)\S+")


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace secrets (a structlog processor)."""
    for key, value in event.items():
        if _SECRET_KEYS.search(key):
            event[key] = "[redacted]"
        elif isinstance(value, str):
            event[key] = _BEARER.sub(r"\1[redacted]", without_credentials(value))
    return event


def configure_logs(*, level: str = "INFO", recent: Processor | None = None) -> None:
    """Send everything to standard error: readable on a terminal, JSON lines elsewhere.

    Args:
        level: the least that is sent.
        recent: gets every event, without secrets.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_code,
        structlog.processors.format_exc_info,
        redact,
        *([] if recent is None else [recent]),
    ]
    renderer: Any = (
        structlog.dev.ConsoleRenderer()
        if sys.stderr.isatty()
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    # The client library logs each attempt to connect; the daemon logs the problem once.
    logging.getLogger("rgd.pulsar.client").setLevel(logging.CRITICAL)
