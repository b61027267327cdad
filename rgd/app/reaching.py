"""Retries until an outside service is reachable, and logs its loss and its return once each."""

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Final

import structlog

from rgd.ports.exchange import ExchangeDown

#: Pause between two attempts.
RECONNECT_S: Final = 1.0

_log = structlog.get_logger("rgd.daemon")


async def reach(attempt: Callable[[], object], what: str, notes: MutableMapping[str, str]) -> None:
    """Retry until it is reachable; log once that it is not, and once that it is.

    Args:
        attempt: makes an awaitable that raises ExchangeDown if it is unreachable.
        what: its name, for the log.
        notes: what is degraded and why, by name; kept up to date.
    """
    is_known_down = False
    while True:
        try:
            result = attempt()
            assert asyncio.iscoroutine(result)
            await result
        except ExchangeDown as error:
            if not is_known_down:
                _log.warning("cannot reach", what=what, reason=str(error))
            is_known_down = True
            notes[what] = f"unreachable: {error}"
            await asyncio.sleep(RECONNECT_S)
        else:
            if is_known_down:
                _log.info("reached", what=what)
            notes.pop(what, None)
            return
