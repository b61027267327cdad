"""The data folder of an embedded broker: its owner, its port and its process.

Law: exactly one of the daemons that use a folder is the owner, for as long as it lives:
the kernel holds its lock (`flock`) and releases it in every case when the owner dies. The owner records
its broker in the folder, so that others can join it and the next owner can clean up.
How: `owner.lock` is only locked, `broker.json` only replaced atomically, so no daemon reads half of it.
Starting, joining and taking over are in `rgd.adapters.exchange.embedded`.
"""

import contextlib
import fcntl
import json
import os
import secrets
import stat
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rgd.adapters.exchange.seal import SECRET_BYTES
from rgd.config.plain_files import replace_file
from rgd.errors import ConfigError, Fault

#: The broker's ports are below the ephemeral ranges of Linux and macOS. Otherwise a client that connects to a
#: stopped broker could get the broker's port as its own, and connect to itself.
_PORT_FIRST: Final = 20_000
_PORT_COUNT: Final = 12_000
#: A log above this size is renamed when the broker starts; one older one is kept.
LOG_BYTES_MAX: Final = 8 << 20
#: Beyond it the broker drops messages, and stops sending a table to its reader for ever (0.2.0; its
#: default is 64 KiB). So it is practically unlimited; a reader's own queue bounds what is sent ahead.
_WRITE_BUFFER_BYTES_MAX: Final = 1 << 30
#: How much of the log of a broker that did not start is shown.
_LOG_EXCERPT_BYTES_MAX: Final = 2000


@dataclass(frozen=True, slots=True)
class BrokerRecord:
    """The owner's last record of its broker."""

    port: int
    broker_pid: int
    #: Whether the broker was seen to listen.
    is_ready: bool


class EmbeddedFolder:
    """The files of one embedded broker; the folder is created when it is first locked."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        #: The broker appends `.rocksdb` to the name.
        self.database = self.path / "broker"
        self.config = self.path / "broker.toml"
        self.log = self.path / "broker.log"
        #: The shared secret of the daemons of this folder (`rgd.adapters.exchange.seal`).
        self.secret = self.path / "seal.key"
        self._record = self.path / "broker.json"
        self._lock_path = self.path / "owner.lock"
        self._lock_fd: int | None = None

    def try_lock(self) -> bool:
        """Become the owner unless another daemon is; True also if we are already."""
        if self._lock_fd is not None:
            return True
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_folder()
        lock_fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # An owner without it would run a broker that refuses every daemon.
            if not self.secret.exists():
                replace_file(self.secret, secrets.token_bytes(SECRET_BYTES), 0o600)
        except OSError as exc:
            os.close(lock_fd)
            if isinstance(exc, BlockingIOError):
                return False
            raise
        self._lock_fd = lock_fd
        return True

    def is_lock_gone(self) -> bool:
        """Whether the folder was removed or replaced, which makes our lock useless."""
        if self._lock_fd is None:
            return False
        try:
            there = self._lock_path.stat()
        except OSError:
            return True
        ours = os.fstat(self._lock_fd)
        return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino)

    def unlock(self) -> None:
        """Give up the ownership. Idempotent."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def _check_folder(self) -> None:
        """Refuse a folder in which other users could put a secret of their own."""
        if self.path.stat().st_mode & stat.S_IWOTH:
            raise ConfigError(
                Fault(
                    "settings",
                    "exchange.embedded_dir",
                    f"expected a folder that others cannot write to, got {self.path}; chmod o-w it, "
                    "or name one below it, which is then made",
                )
            )

    def read_record(self) -> BrokerRecord | None:
        """The record of the current or last owner; None if there is no readable one."""
        try:
            return BrokerRecord(**json.loads(self._record.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def write_record(self, record: BrokerRecord) -> None:
        """Replace the record; only the owner does."""
        replace_file(self._record, json.dumps(asdict(record)).encode())

    def write_config(self, port: int) -> None:
        """Write the broker's configuration: the loopback only, and no metrics port.

        A broker that finds no configuration listens on all interfaces and opens port 8080.
        """
        lines = (
            f"addr = {json.dumps(f'127.0.0.1:{port}')}",
            f"db_path = {json.dumps(str(self.database))}",
            'log_level = "error"',
            f"pulsar_channel_write_buffer_high_water_mark_bytes = {_WRITE_BUFFER_BYTES_MAX}",
            f"pulsar_channel_write_buffer_low_water_mark_bytes = {_WRITE_BUFFER_BYTES_MAX // 2}",
            "[metrics]",
            "enabled = false",
        )
        self.config.write_text("\n".join(lines) + "\n")

    def rotate_log(self) -> None:
        """Rename a large log."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_BYTES_MAX:
                self.log.replace(self.log.with_suffix(".log.1"))

    def log_since(self, offset: int) -> str:
        """The beginning of the broker's log after an offset."""
        try:
            with self.log.open("rb") as log:
                log.seek(offset)
                return log.read(_LOG_EXCERPT_BYTES_MAX).decode(errors="replace").strip()
        except OSError:
            return ""

    def ports(self) -> Iterator[int]:
        """The ports to try: the last one, then others, always the same ones for a folder."""
        record = self.read_record()
        if record is not None:
            yield record.port
        start = zlib.crc32(os.fsencode(self.path))
        for step in range(_PORT_COUNT):
            yield _PORT_FIRST + (start + step) % _PORT_COUNT
