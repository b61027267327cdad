"""The last known content of the policies table, in one file beside the usage log.

    {"version":1,"table":"standalone pulsar://pulsar:6650 persistent://public/rgd/policies"}
    "group:gold"<TAB>{"version":1,"revision":3,"writer":"b1","value":{"publish":{"messages":1000}}}
    {"records":1,"crc32":2774289142}

Law: the file is used completely or not at all, and only for its own table. It is replaced
atomically. `rgd.wire.policies` decodes the records.
"""

import json
import threading
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rgd.config.plain_files import read_plain_file, replace_file
from rgd.ports.policies import NotKept

#: The version of the file format; a file of another version is not read.
VERSION: Final = 1
#: Largest file that is read: 500,000 records of 500 bytes.
FILE_BYTES_MAX: Final = 256 << 20

_TAB: Final = b"\t"


class _UnusableError(Exception):
    """The file exists but is unusable."""


class PoliciesFile:
    """Fulfils `rgd.ports.policies.PoliciesKept` with one file.

    Args:
        path: the file.
        table: the table's identity; policies of another table are not used.
    """

    def __init__(self, path: Path, table: str) -> None:
        self._path = path
        self._table = table
        #: An abandoned store may still run in its thread.
        self._lock = threading.Lock()
        self.trouble: str | None = None

    def load(self) -> list[tuple[str, bytes]] | None:
        self.trouble = None
        try:
            content = read_plain_file(self._path, FILE_BYTES_MAX)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._refuse(error.strerror or type(error).__name__)
            return None
        try:
            return self._records(content)
        except _UnusableError as error:
            self._refuse(str(error))
        except (ValueError, RecursionError, KeyError, TypeError):
            self._refuse("it is damaged")
        return None

    def store(self, records: Iterable[tuple[str, bytes]]) -> None:
        with self._lock:
            try:
                replace_file(self._path, _content(self._table, records))
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise NotKept(f"{self._path}: {reason}") from error

    def _records(self, content: bytes) -> list[tuple[str, bytes]]:
        if len(content) > FILE_BYTES_MAX:
            raise _UnusableError(f"it is larger than {FILE_BYTES_MAX} bytes")
        head, *lines, end, rest = content.split(b"\n")
        first, last = json.loads(head), json.loads(end)
        if first["version"] != VERSION:
            raise _UnusableError(f"it is of version {first['version']!r:.20}, not {VERSION}")
        if first["table"] != self._table:
            raise _UnusableError("it is of another table: cluster, exchange.url or policies.topic")
        body = content[: len(content) - len(end) - 1]
        if rest or last != {"records": len(lines), "crc32": zlib.crc32(body)}:
            raise _UnusableError("it is damaged")
        return [_record(line) for line in lines]

    def _refuse(self, why: str) -> None:
        self.trouble = f"did not use {self._path}: {why}"


def _record(line: bytes) -> tuple[str, bytes]:
    key, tab, value = line.partition(_TAB)
    if not tab:
        raise ValueError
    return str(json.loads(key)), value


def _content(table: str, records: Iterable[tuple[str, bytes]]) -> bytes:
    """The file."""
    head = json.dumps({"version": VERSION, "table": table}).encode()
    lines = [json.dumps(key).encode() + _TAB + value for key, value in records]
    body = b"\n".join((head, *lines, b""))
    end = {"records": len(lines), "crc32": zlib.crc32(body)}
    return body + json.dumps(end, separators=(",", ":")).encode() + b"\n"
