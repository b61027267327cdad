"""The names of the peers that the last run knew, kept across restarts.

Law: losing this file costs two rounds of waiting at the next start, never
correctness. So writing it never raises and never blocks: it is done in a thread, and of names that wait for
a slow disk only the newest are written.
"""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Final

from rgd.config.kept_file import KeptFile

#: Largest file that is read.
FILE_BYTES_MAX: Final = 32 << 20


class KnownPeers:
    """A small JSON file beside the usage log."""

    def __init__(self, path: Path) -> None:
        self._file = KeptFile(path, "peers", FILE_BYTES_MAX)
        self._newest: tuple[str, ...] = ()
        self._writing: asyncio.Task[None] | None = None

    def load(self) -> frozenset[str]:
        """The names stored last; none if there is no such file or it cannot be read."""
        return frozenset(json.loads(self._file.load() or b"[]"))

    def store(self, names: tuple[str, ...]) -> None:
        """Replace the stored names soon."""
        self._newest = names
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        written = None
        while written is not self._newest:
            written = self._newest
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self._file.store, json.dumps(written).encode())
