"""Policies from a groups file, such as a mounted ConfigMap (`policies.source: file`).

Law: a file is accepted or refused as a whole. A refused or missing one leaves the last valid policies
in force, also for a plane that takes over, and `trouble` reports it until a valid one appears. Daemons do not exchange policies: each
reports its file's hash, and daemons with different hashes raise an alarm (`AlarmCode.POLICIES_DIFFER`).
How: the file is checked every FILE_POLL_S. The check follows links, because Kubernetes swaps a link to change
a ConfigMap. A thread reads and hashes it, because a large file takes seconds. What was accepted is kept on disk for the next plane.
"""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from rgd.app.policies.source import OnSnapshot, ReadOnlyPolicies
from rgd.config.document import read_content
from rgd.config.groups import parse_groups
from rgd.config.kept_file import KeptFile
from rgd.config.plain_files import fingerprint
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.errors import ConfigError
from rgd.wire.policies import policies_hash

#: Time between two checks of the groups file.
FILE_POLL_S: Final = 1.0
#: Most faults of a refused file that are logged one by one; `rgd validate` lists all.
FAULTS_LOGGED_MAX: Final = 20
#: Most logged characters of a fault, which may quote the file.
FAULT_CHARS_MAX: Final = 500

_log = structlog.get_logger("rgd.policies")


class GroupsFile:
    """A groups file; what was accepted of it is kept for the next plane.

    Args:
        path: the file.
        kept: has the content that was last accepted.
        resumes: another plane of this daemon accepted it.
    """

    def __init__(self, path: Path, kept: KeptFile, *, resumes: bool) -> None:
        self.path = path
        self._kept = kept
        self._resumes = resumes

    def begin(self) -> tuple[PolicySnapshot, ConfigError | None]:
        """The policies to begin with; with the error, if the file is refused and they are those that are kept.

        Raises:
            ConfigError: the file is refused, and nothing is kept.
        """
        try:
            return self.read(), None
        except ConfigError as error:
            accepted = self._kept.load() if self._resumes else None
            if accepted is None:
                raise
            return parse_groups(accepted, str(self.path)), error

    def read(self) -> PolicySnapshot:
        """The policies of the file.

        Raises:
            ConfigError: it is refused, or cannot be read.
        """
        content = read_content(self.path)
        snapshot = parse_groups(content, str(self.path))
        # Nothing waits for the disk.
        threading.Thread(target=self._keep, args=(content,), daemon=True).start()
        return snapshot

    def _keep(self, content: bytes) -> None:
        with suppress(OSError):
            self._kept.store(content)


def seed_of(file: GroupsFile | None) -> PolicySnapshot | None:
    """The snapshot by which a groups file seeds a table; None if there is no file. Raises as `GroupsFile.begin`."""
    if file is None:
        return None
    snapshot, refused = file.begin()
    if refused is not None:
        _log_refused(refused)
    return snapshot


class FilePolicies(ReadOnlyPolicies):
    """Policies from a groups file.

    Raises:
        ConfigError: it cannot be used now; a daemon does not start without policies.
    """

    def __init__(self, file: GroupsFile) -> None:
        self._file = file
        # Before the read, so that the next check sees a concurrent write.
        self._stamp: object = fingerprint([file.path])
        self._snapshot, refused = file.begin()
        self._hash = policies_hash(self._snapshot)
        if refused is not None:
            self._tell_refused(refused)
            # It may have been only unreadable.
            self._stamp = None
        self._owner = f"{file.path}, which is the truth; change the file"

    #: It was read before anything else.
    is_settled = True
    is_known = True

    def snapshot(self) -> PolicySnapshot:
        """The policies of the last valid file."""
        return self._snapshot

    async def follow(self, on_snapshot: OnSnapshot) -> None:
        """Read the file again whenever it changes."""
        on_snapshot(self._snapshot, self._hash)
        while True:
            await asyncio.sleep(FILE_POLL_S)
            stamp = await asyncio.to_thread(fingerprint, [self._file.path])
            if stamp != self._stamp:
                # A file that is in force, or was refused for its content, is not read again, even if
                # it replaces another one.
                self._stamp = None
                if await self._reload(on_snapshot):
                    self._stamp = stamp

    async def close(self) -> None:
        """Nothing is open."""

    async def _reload(self, on_snapshot: OnSnapshot) -> bool:
        """Load the file; False if it could not be read, whatever its content."""
        try:
            loaded = await asyncio.to_thread(self._load)
            on_snapshot(*loaded)
        except ConfigError as error:
            self._tell_refused(error)
            return not isinstance(error.__cause__, OSError)
        except Exception:
            self.trouble = "the last good ones stay in force: internal error while it was read"
            raise
        self._snapshot, self._hash = loaded
        self.trouble = None
        _log.info(
            "reloaded groups file",
            file=str(self._file.path),
            groups=len(self._snapshot.groups),
            hash=f"{self._hash:016x}",
        )
        return True

    def _load(self) -> tuple[PolicySnapshot, int]:
        """The policies of the file, and their hash."""
        snapshot = self._file.read()
        return snapshot, policies_hash(snapshot)

    def _tell_refused(self, error: ConfigError) -> None:
        others = sum(fault.count for fault in error.faults) - 1
        more = f", and {others} more" if others else ""
        first = str(error.faults[0])[:FAULT_CHARS_MAX]
        trouble = f"the last good ones stay in force: {first}{more}"
        if trouble == self.trouble:
            return  # It is already logged.
        self.trouble = trouble
        _log_refused(error)


def _log_refused(error: ConfigError) -> None:
    for fault in error.faults[:FAULTS_LOGGED_MAX]:
        _log.error("refused groups file", fault=str(fault)[:FAULT_CHARS_MAX])
