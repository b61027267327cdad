"""The names of the peers that the last run knew, kept across restarts.

Law: losing this file costs two rounds of waiting at the next start, never
correctness. So writing it never raises and never blocks.
"""

import contextlib
import json
from pathlib import Path
from typing import Final

from rgd.config.plain_files import read_plain_file, replace_file
from rgd.wire.checks import check_broker
from rgd.wire.errors import WireError

#: Most names that are read; a larger file is invalid.
NAMES_MAX: Final = 100_000
#: Largest file that is read.
FILE_BYTES_MAX: Final = 32 << 20


class KnownPeers:
    """A small JSON file beside the usage log."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> frozenset[str]:
        """The names stored last; none if there is no such file or it cannot be read."""
        try:
            names = json.loads(read_plain_file(self._path, FILE_BYTES_MAX))
        except (OSError, ValueError, RecursionError):
            return frozenset()
        if not isinstance(names, list) or len(names) > NAMES_MAX:
            return frozenset()
        return frozenset(name for name in names if isinstance(name, str) and _is_broker(name))

    def store(self, names: tuple[str, ...]) -> None:
        """Replace the stored names."""
        with contextlib.suppress(OSError):
            replace_file(self._path, json.dumps(list(names)).encode())


def _is_broker(name: str) -> bool:
    try:
        check_broker(name)
    except WireError:
        return False
    return True
