"""Stores the last policies of a stock Pulsar on disk, for a start while Pulsar is unreachable.

Law: the file is used completely or not at all, and only for the same admin API. It has no secrets, only
groups, rates and names.
"""

import contextlib
from pathlib import Path
from typing import Final

import msgspec

from rgd.config.kept_file import KeptFile
from rgd.ports.stock import StockPolicies

#: Largest file that is read: some 500,000 names with limits.
FILE_BYTES_MAX: Final = 256 << 20

_decoder: Final = msgspec.json.Decoder(StockPolicies)


class StockFile:
    """Implements `rgd.ports.stock.StockStore` with one JSON file.

    Args:
        path: the file.
        url: the admin API's, whose policies these are.
    """

    def __init__(self, path: Path, url: str) -> None:
        self._file = KeptFile(path, url, FILE_BYTES_MAX)

    def load(self) -> StockPolicies | None:
        """The last stored policies for this Pulsar; None if there are no usable ones."""
        # Another version of rgd may have written other fields.
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            return _decoder.decode(self._file.load() or b"")
        return None

    def store(self, policies: StockPolicies) -> None:
        """Replace it; a crash at any moment leaves the old one or the new one.

        Raises:
            OSError: it cannot be stored, and is as it was.
        """
        self._file.store(msgspec.json.encode(policies))
