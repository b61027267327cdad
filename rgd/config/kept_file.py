"""A file in which a run leaves something for the next one.

    {"version":1,"of":"standalone pulsar://pulsar:6650 persistent://public/rgd/policies","crc32":2774289142}
    whatever is kept

Law: it is used completely or not at all, and only for what it was kept of. One that is not used is renamed and never
overwritten: it may be the last copy. A crash while it is written leaves the old content or the new one.
"""

import json
import threading
import zlib
from pathlib import Path

from rgd.config.plain_files import read_plain_file, replace_file, set_aside


class KeptFile:
    """One such file.

    Args:
        path: the file.
        of: what its content is of; content of anything else is not used.
        bytes_max: the largest file that is read.
    """

    def __init__(self, path: Path, of: str, bytes_max: int) -> None:
        self.path = path
        self._of = of
        self._bytes_max = bytes_max
        #: An abandoned store may still run in its thread.
        self._lock = threading.Lock()
        #: Why `load` found no usable content; None where nothing was stored.
        self.trouble: str | None = None

    def load(self) -> bytes | None:
        """What was stored last; None if there is nothing usable."""
        self.trouble = None
        try:
            data = read_plain_file(self.path, self._bytes_max)
            head, _, content = data.partition(b"\n")
            if head == self._head(content):
                return content
            why = "it is damaged, or of another version, cluster, exchange.url or policies.topic"
            if len(data) > self._bytes_max:
                why = f"it is larger than {self._bytes_max} bytes"
        except FileNotFoundError:
            return None
        except OSError as error:
            why = error.strerror or type(error).__name__
        kept = set_aside(self.path, why).kept
        now = "" if kept is None else f"; it is now {kept.name}"
        self.trouble = f"did not use {self.path}: {why}{now}"
        return None

    def store(self, content: bytes) -> None:
        """Replace it.

        Raises:
            OSError: it cannot be written, and is as it was.
        """
        with self._lock:
            replace_file(self.path, self._head(content) + b"\n" + content)

    def _head(self, content: bytes) -> bytes:
        head = {"version": 1, "of": self._of, "crc32": zlib.crc32(content)}
        return json.dumps(head, separators=(",", ":")).encode()
