"""No usage log (`log.enabled: false`): nothing is encoded, written or stored.

PIP-82 counts "no persistent storage overhead" among the merits of its exchange, which the log is no part of.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rgd.core.exchange.messages import Loggable

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class NoLog:
    """Fulfils `rgd.ports.usagelog.UsageLog`."""

    appended = lost = damaged = local_bytes = 0
    synced_index = -1
    deleted = _NOTHING
    trouble = None

    async def open(self) -> None:
        """Nothing to open."""

    def append(self, _item: Loggable, *, broker_timestamp_ms: int) -> bool:  # noqa: ARG002 -- as the port names it
        """Nothing is kept, which is no loss."""
        return True

    async def close(self) -> None:
        """Nothing to close."""
