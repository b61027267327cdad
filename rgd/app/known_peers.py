"""The names of the peers that the last run knew, kept across restarts.

Law: losing this file costs two rounds of waiting at the next start, never
correctness. So writing it never raises and never blocks.
"""

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

    def load(self) -> frozenset[str]:
        """The names stored last; none if there is no such file or it cannot be read."""
        return frozenset(json.loads(self._file.load() or b"[]"))

    def store(self, names: tuple[str, ...]) -> None:
        """Replace the stored names."""
        with contextlib.suppress(OSError):
            self._file.store(json.dumps(names).encode())
