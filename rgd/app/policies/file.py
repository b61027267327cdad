"""Policies from a groups file, such as a mounted ConfigMap (`policies.source: file`).

Law: a file is accepted or refused as a whole. A refused or missing one leaves the last valid policies
in force, and `trouble` reports it until a valid one appears. Daemons do not exchange policies: each
reports its file's hash, and daemons with different hashes raise an alarm (`AlarmCode.POLICIES_DIFFER`).
How: the file is checked every FILE_POLL_S. The check follows links, because Kubernetes swaps a link to change
a ConfigMap. A thread reads and hashes it, because a large file takes seconds.
"""

import asyncio
from pathlib import Path
from typing import Final

import structlog

from rgd.app.policies.source import OnSnapshot, ReadOnlyPolicies
from rgd.config.groups import load_groups
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

    Raises:
        ConfigError: it cannot be used now; a daemon does not start without policies.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Before the read, so that the next check sees a concurrent write.
        self._stamp: object = fingerprint([path])
        self._snapshot, self._hash = _load(path)
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
            loaded = await asyncio.to_thread(_load, self._path)
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
            file=str(self._path),
            groups=len(self._snapshot.groups),
            hash=f"{self._hash:016x}",
        )
        return True

    def _tell_refused(self, error: ConfigError) -> None:
        others = sum(fault.count for fault in error.faults) - 1
        more = f", and {others} more" if others else ""
        first = str(error.faults[0])[:FAULT_CHARS_MAX]
        trouble = f"the last good ones stay in force: {first}{more}"
        if trouble == self.trouble:
            return  # It is already logged.
        self.trouble = trouble
        for fault in error.faults[:FAULTS_LOGGED_MAX]:
            _log.error("refused groups file", fault=str(fault)[:FAULT_CHARS_MAX])


def seed_of(path: Path | None) -> PolicySnapshot | None:
    """The snapshot by which a groups file seeds a table; None if there is no file."""
    return None if path is None else load_groups(path)


def _load(path: Path) -> tuple[PolicySnapshot, int]:
    """The policies of the file, and their hash."""
    snapshot = load_groups(path)
    return snapshot, policies_hash(snapshot)
