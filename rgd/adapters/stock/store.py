"""Stores the last policies of a stock Pulsar on disk, for a start while Pulsar is unreachable.

Law: the file is used completely or not at all, and only for the same admin API. Writing
it never raises. It has no secrets, only groups, rates and names.
"""

import contextlib
from pathlib import Path
from typing import Final

import msgspec

from rgd.config.plain_files import replace_file
from rgd.ports.stock import StockPolicies

#: The version of the file format; a file of another version is not read.
VERSION: Final = 1


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    url: str
    policies: StockPolicies


_decoder: Final = msgspec.json.Decoder(_Stored)


class StockFile:
    """Implements `rgd.ports.stock.StockStore` with one JSON file.

    Args:
        path: the file.
        url: the admin API's, whose policies these are.
    """

    def __init__(self, path: Path, url: str) -> None:
        self._path = path
        self._url = url

    def load(self) -> StockPolicies | None:
        """The last stored policies for this Pulsar; None if there are no usable ones."""
        try:
            stored = _decoder.decode(self._path.read_bytes())
        except (OSError, msgspec.MsgspecError, RecursionError):
            return None
        if stored.version != VERSION or stored.url != self._url:
            return None
        return stored.policies

    def store(self, policies: StockPolicies) -> None:
        """Replace it; a crash at any moment leaves the old one or the new one."""
        with contextlib.suppress(OSError):
            stored = _Stored(VERSION, self._url, policies)
            replace_file(self._path, msgspec.json.encode(stored))
