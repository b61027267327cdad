"""No usage log (`log.enabled: false`): nothing is encoded, written or stored, and whoever asks is told so.

PIP-82 counts "no persistent storage overhead" among the merits of its exchange, which the log is no part of.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rgd.core.exchange.messages import Loggable
from rgd.ports.log_door import CursorView, EntriesView, From, LogOff

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class NoLog:
    """Fulfils `rgd.ports.usagelog.UsageLog`, and `rgd.ports.log_door.LogDoor` with refusals."""

    appended = lost = damaged = local_bytes = 0
    synced_index = -1
    deleted = _NOTHING
    trouble = None

    async def open(self) -> None:
        """Nothing to open."""

    def append(self, _item: Loggable, *, broker_timestamp_ms: int) -> None:
        """Nothing is kept, which is no loss."""

    async def close(self) -> None:
        """Nothing to close."""

    def cursors(self) -> tuple[CursorView, ...]:
        raise LogOff

    def cursor(self, _name: str) -> CursorView:
        raise LogOff

    async def acknowledge(self, _name: str, _index: int) -> CursorView:
        raise LogOff

    async def forget(self, _name: str) -> None:
        raise LogOff

    async def entries(
        self,
        _start: From,
        _limit: int,
        *,
        expose: bool | None = None,  # noqa: ARG002 -- the port's keyword
    ) -> EntriesView:
        raise LogOff
