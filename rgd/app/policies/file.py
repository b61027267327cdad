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
from rgd.config.groups import load_groups, parse_groups
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


class FilePolicies(ReadOnlyPolicies):
    """Policies from a groups file.

    Args:
        path: the groups file.
        kept: has what was last accepted.
        resumes: another plane of this daemon accepted what is kept.

    Raises:
        ConfigError: it cannot be used now; a daemon does not start without policies.
    """

    def __init__(self, path: Path, kept: KeptFile, *, resumes: bool = False) -> None:
        self._path = path
        self._kept = kept
        # Before the read, so that the next check sees a concurrent write.
        self._stamp: object = fingerprint([path])
        try:
            self._snapshot, self._hash, content = _load(path)
            self._keep(content)
        except ConfigError as error:
            accepted = kept.load() if resumes else None
            if accepted is None:
                raise
            self._tell_refused(error)
            # It may have been only unreadable.
            self._stamp = None
            self._snapshot, self._hash = _parsed(accepted, path)
        self._owner = f"{path}, which is the truth; change the file"

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
            stamp = await asyncio.to_thread(fingerprint, [self._path])
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
            snapshot, its_hash, content = await asyncio.to_thread(_load, self._path)
            on_snapshot(snapshot, its_hash)
        except ConfigError as error:
            self._tell_refused(error)
            return not isinstance(error.__cause__, OSError)
        except Exception:
            self.trouble = "the last good ones stay in force: internal error while it was read"
            raise
        self._snapshot, self._hash = snapshot, its_hash
        self._keep(content)
        self.trouble = None
        _log.info(
            "reloaded groups file",
            file=str(self._path),
            groups=len(self._snapshot.groups),
            hash=f"{self._hash:016x}",
        )
        return True

    def _keep(self, content: bytes) -> None:
        """Keep what was accepted for the next plane; nothing waits for the disk."""

        def store() -> None:
            with suppress(OSError):
                self._kept.store(content)

        threading.Thread(target=store, daemon=True).start()

    def _tell_refused(self, error: ConfigError) -> None:
        others = sum(fault.count for fault in error.faults) - 1
        more = f", and {others} more" if others else ""
        first = str(error.faults[0])[:FAULT_CHARS_MAX]
        trouble = f"the last good ones stay in force: {first}{more}"
        if trouble == self.trouble:
            return  # It is already logged.
        self.trouble = trouble
        _log_refused(error)


def seed_of(path: Path | None, *, resumes: bool) -> PolicySnapshot | None:
    """The snapshot by which a groups file seeds a table; None if there is no file.

    A plane that resumes does without one that is refused, because its gate has policies already.

    Raises:
        ConfigError: another one cannot.
    """
    try:
        return None if path is None else load_groups(path)
    except ConfigError as error:
        if not resumes:
            raise
        _log_refused(error)
        return None


def _log_refused(error: ConfigError) -> None:
    for fault in error.faults[:FAULTS_LOGGED_MAX]:
        _log.error("refused groups file", fault=str(fault)[:FAULT_CHARS_MAX])


def _load(path: Path) -> tuple[PolicySnapshot, int, bytes]:
    """The policies of the file, their hash, and its content."""
    content = read_content(path)
    return *_parsed(content, path), content


def _parsed(content: bytes, path: Path) -> tuple[PolicySnapshot, int]:
    """The policies of a groups file's content, and their hash."""
    snapshot = parse_groups(content, str(path))
    return snapshot, policies_hash(snapshot)
