"""The last known content of the policies table, in one file beside the usage log (`rgd.config.kept_file`).

    "group:gold"<TAB>{"version":1,"revision":3,"writer":"b1","value":{"publish":{"messages":1000}}}

`rgd.wire.policies` decodes the records.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rgd.config.kept_file import KeptFile
from rgd.ports.policies import NotKept

#: Largest file that is read: 500,000 records of 500 bytes.
FILE_BYTES_MAX: Final = 256 << 20

_TAB: Final = b"\t"


class PoliciesFile:
    """Fulfils `rgd.ports.policies.PoliciesKept` with one file.

    Args:
        path: the file.
        table: the table's identity; policies of another table are not used.
    """

    def __init__(self, path: Path, table: str) -> None:
        self._file = KeptFile(path, table, FILE_BYTES_MAX)

    @property
    def trouble(self) -> str | None:
        return self._file.trouble

    def load(self) -> list[tuple[str, bytes]] | None:
        content = self._file.load()
        if content is None:
            return None
        parts = (line.partition(_TAB) for line in content.split(b"\n")[:-1])
        return [(str(json.loads(key)), value) for key, _, value in parts]

    def store(self, records: Iterable[tuple[str, bytes]]) -> None:
        lines = [json.dumps(key).encode() + _TAB + value + b"\n" for key, value in records]
        try:
            self._file.store(b"".join(lines))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise NotKept(f"{self._file.path}: {reason}") from error
