"""Stores the known content of a policies table on disk, for a start while the table is unreachable.

Law: nothing waits for the disk. A full or slow disk only costs the next start its stored policies,
and is reported. Changes are stored shortly after they arrive, many at once, never more often
than every `Pauses.keep_s`, and never for more than a tenth of the time.
`rgd.adapters.policies.kept` has the file format.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import structlog

from rgd.app.policies.refusals import Refusals
from rgd.core.policies.records import PolicyRecord
from rgd.ports.policies import NotKept, PoliciesKept
from rgd.wire.errors import WireError
from rgd.wire.policies import decode_policy, encode_policy

#: The pause after a store, as a multiple of its duration.
KEEP_PAUSES: Final = 10

_log = structlog.get_logger("rgd.policies")


class Keeping:
    """Stores a table's known content.

    Args:
        kept: the storage.
        known: the records that count; those of revision 0 are a groups file's, and not stored.
        every_s: the least time between two stores.
    """

    def __init__(
        self, kept: PoliciesKept, known: Callable[[], Sequence[PolicyRecord]], *, every_s: float
    ) -> None:
        self._kept = kept
        self._known = known
        self._every_s = every_s
        self._is_changed = asyncio.Event()
        #: Why the known content is not on disk; None if it is, or will be in a moment.
        self.trouble: str | None = None

    def note_change(self) -> None:
        """Note a change of the known content."""
        self._is_changed.set()

    async def run(self) -> None:
        """Store changes until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._is_changed.wait()
            began = loop.time()
            await self._store()
            took_s = loop.time() - began
            await asyncio.sleep(max(self._every_s, KEEP_PAUSES * took_s))

    async def finish(self) -> None:
        """Store the remaining changes after `run` has ended."""
        if self._is_changed.is_set():
            await self._store()

    async def _store(self) -> None:
        self._is_changed.clear()
        # Copied on the loop, where nothing changes it meanwhile, and encoded in the thread.
        records = self._known()
        try:
            encoded = ((one.key, encode_policy(one)) for one in records if one.revision)
            await asyncio.to_thread(self._kept.store, encoded)
        except NotKept as error:
            self._is_changed.set()
            if self.trouble is None:
                _log.error("cannot keep the policies on disk", reason=str(error))
            self.trouble = f"they cannot be kept on disk for the next start: {error}"
        except asyncio.CancelledError:
            self._is_changed.set()
            raise
        else:
            if self.trouble is not None:
                _log.info("keeps the policies on disk again")
            self.trouble = None


def kept_records(kept: PoliciesKept, refusals: Refusals) -> list[PolicyRecord] | None:
    """The last stored records; None if no usable ones exist."""
    stored = kept.load()
    if kept.trouble is not None:
        _log.warning("no policies from an earlier run", reason=kept.trouble)
    return None if stored is None else list(_decoded(stored, refusals))


def _decoded(stored: Iterable[tuple[str, bytes]], refusals: Refusals) -> Iterator[PolicyRecord]:
    for key, value in stored:
        try:
            yield decode_policy(key, value)
        except WireError as error:
            refusals.add(key, str(error))
