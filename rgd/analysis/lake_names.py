"""How the objects of a lake are named (`rgd.analysis.lake`), and which of them count.

    LAKE/rgd-lake.json
    LAKE/usage/day=2026-11-23/<key>-<size>-000000.parquet   every table but `segments` likewise
    LAKE/segments/key=<key>/<size>.parquet                  created last

Law: what was converted of a segment is what the largest size among its rows in `segments` names; anything else is of a
conversion that was cut off, or was overtaken by one of more bytes.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from rgd.analysis.lake_schema import LAKE_VERSION
from rgd.storage.errors import ObjectMissing
from rgd.storage.objects import Objects

MARKER: Final = "rgd-lake.json"
MARKER_BYTES_MAX: Final = 1024
#: What it holds in a lake of this version.
MARK: Final = json.dumps({"version": LAKE_VERSION}).encode() + b"\n"
PARQUET: Final = ".parquet"
#: What a report reads.
REPORTED: Final = ("minutes", "rounds", "segments")

_FILE: Final = re.compile(r"\w+/day=[\d-]{10}/([0-9a-f]{32})-(\d+)-\d{6}\.parquet")
_ROW: Final = re.compile(r"segments/key=([0-9a-f]{32})/(\d+)\.parquet")
_DAY: Final = re.compile(r"/day=([\d-]{10})/")


def file_name(table: str, day: str, key: str, size: int, part: int) -> str:
    """Of a part of what was converted of a segment of which `size` bytes could be read."""
    return f"{table}/day={day}/{key}-{size}-{part:06}.parquet"


def row_name(key: str, size: int) -> str:
    """Of a segment's row in `segments`."""
    return f"segments/key={key}/{size}.parquet"


def key_and_size(name: str) -> tuple[str, int] | None:
    """Which segment an object is of, and how many bytes of it; None: it is no file of a table."""
    found = _FILE.fullmatch(name) or _ROW.fullmatch(name)
    return None if found is None else (found[1], int(found[2]))


def day_ms(name: str) -> int | None:
    """When the day begins whose rows a file has, ms since 1970; None: it is a segment's row."""
    found = _DAY.search(name)
    if found is None:
        return None
    return int(datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp()) * 1000


def is_lake(objects: Objects) -> bool:
    """Whether a place is a lake."""
    with suppress(ObjectMissing):
        return bool(objects.read_range(MARKER, 0, 1))
    return False


def newest(names: Iterable[str]) -> dict[str, int]:
    """By key, how many bytes of a segment could be read when it was converted."""
    sizes: dict[str, int] = {}
    for key, size in filter(None, map(key_and_size, names)):
        sizes[key] = max(size, sizes.get(key, 0))
    return sizes


def files(objects: Objects, *tables: str) -> Iterator[tuple[str, int]]:
    """Names and bytes of the files of some tables that count."""
    sizes = newest(objects.names("segments"))
    for table in tables:
        for name, length in objects.names(table).items():
            found = key_and_size(name)
            if found is not None and sizes.get(found[0]) == found[1]:
                yield name, length
