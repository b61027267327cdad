"""Stores the last policies of a stock Pulsar on disk, for a start while Pulsar is unreachable.

Law: the file is used completely or not at all, and only for the same admin API. Writing
it never raises. It has no secrets, only groups, rates and names.
"""

import contextlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from rgd.config.plain_files import replace_file
from rgd.ports.stock import StockPolicies

#: The version of the file format; a file of another version is not read.
VERSION: Final = 1
#: Most entries that are encoded in one call, because more would delay requests, even from a thread.
PIECE: Final = 256


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
            replace_file(self._path, _texts(self._url, policies))


def _texts(url: str, policies: StockPolicies) -> Iterator[bytes]:
    """`_Stored` as JSON, piece by piece."""
    yield msgspec.json.encode({"version": VERSION, "url": url})[:-1] + b',"policies":{'
    parts: tuple[tuple[str, Mapping[str, object]], ...] = (
        ("groups", policies.groups),
        ("namespaces", policies.namespaces),
        ("topics", policies.topics),
    )
    for number, (name, entries) in enumerate(parts):
        yield f'{"," if number else ""}"{name}":{{'.encode()
        left = iter(entries.items())
        is_first = True
        while piece := dict(islice(left, PIECE)):
            yield (b"" if is_first else b",") + msgspec.json.encode(piece)[1:-1]
            is_first = False
        yield b"}"
    yield b',"broker":' + msgspec.json.encode(policies.broker) + b"}}"
