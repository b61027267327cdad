"""Tries to reach something outside until it can be reached, and says so once each way."""

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Final

import structlog

from rgd.ports.exchange import ExchangeDown

#: Pause between two tries.
RECONNECT_S: Final = 1.0

_log = structlog.get_logger("rgd.daemon")


async def reach(attempt: Callable[[], object], what: str, notes: MutableMapping[str, str]) -> None:
    """Try until it can be reached; say once that it cannot, and once that it can.

    Args:
        attempt: makes an awaitable that raises ExchangeDown where it cannot be reached.
        what: its name, for people.
        notes: by name, what is degraded and why; kept true.
    """
    is_known_down = False
    while True:
        try:
            result = attempt()
            assert asyncio.iscoroutine(result)
            await result
        except ExchangeDown as error:
            if not is_known_down:
                _log.warning(f"cannot reach {what}", reason=str(error))
            is_known_down = True
            notes[what] = f"unreachable: {error}"
            await asyncio.sleep(RECONNECT_S)
        else:
            if is_known_down:
                _log.info(f"reached {what}")
            notes.pop(what, None)
            return
