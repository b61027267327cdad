"""Policies in a file that is the truth, such as a mounted ConfigMap (`policies.source: file`).

Law: a file is taken whole or refused whole; a refused or vanished one leaves the last good policies
in force, and `trouble` says so until a good one is there. No daemon takes a policy from another: each
reports its file's hash, and those whose hashes differ say so (`AlarmCode.POLICIES_DIFFER`).
How: the file is looked at every FILE_POLL_S; a look follows links, as Kubernetes swaps one to change
a ConfigMap. A large one is read and hashed by a process of its own.
"""

import asyncio
from pathlib import Path
from typing import Final

import structlog

from rgd.app.policies.source import Figures, OnBook
from rgd.config.groups import load_groups
from rgd.config.groups_apart import GroupsUnread, Reading, let_go, load_groups_apart
from rgd.core.errors import PoliciesReadOnly
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.records import Change
from rgd.errors import ConfigError

#: How often the groups file is looked at.
FILE_POLL_S: Final = 1.0
#: A changed file that could not be read is read again after so many looks; the reason may be ours, such
#: as too few descriptors or processes.
UNREAD_LOOKS: Final = 10
#: Of a refused file's faults, so many are logged one by one; `rgd validate` tells all.
FAULTS_TOLD_MAX: Final = 20
#: Characters of a fault that are logged: it may quote the file.
FAULT_CHARS_MAX: Final = 500

_log = structlog.get_logger("rgd.policies")


class FilePolicies:
    """Policies in a file that is the truth.

    Args:
        path: the groups file.
        poll_s: how often it is looked at.

    Raises:
        ConfigError: it cannot be used now; a daemon does not start without policies.
    """

    def __init__(self, path: Path, *, poll_s: float = FILE_POLL_S) -> None:
        self._path = path
        self._poll_s = poll_s
        # Before it is read: what is written meanwhile is then seen at the next look.
        self._stamp: object = _stamp(path)
        loaded = load_groups_apart(path)
        self._book, self._hash = loaded.book, loaded.hash
        self._trouble: str | None = None

    #: It was read before anything else.
    is_settled = True
    is_known = True

    @property
    def trouble(self) -> str | None:
        """Why the file as it is now is not in force; None: it is."""
        return self._trouble

    def figures(self) -> Figures:
        """Whether the file is not in force as it is now."""
        return Figures(is_old=self._trouble is not None)

    def book(self) -> PolicyBook:
        """The file's policies, as last read without a fault."""
        return self._book

    async def follow(self, on_book: OnBook) -> None:
        """Read the file again whenever it changes."""
        on_book(self._book, self._hash)
        unread: object = None
        looks_left = 0
        while True:
            await asyncio.sleep(self._poll_s)
            stamp = await asyncio.to_thread(_stamp, self._path)
            if stamp == self._stamp:
                continue
            if looks_left and stamp == unread:
                looks_left -= 1
                continue
            # Only what is in force, or was refused for what it says, is not read again: not even when
            # the file of before comes back.
            self._stamp = None
            if await self._reload(on_book):
                self._stamp = stamp
            else:
                unread, looks_left = stamp, UNREAD_LOOKS

    async def change(self, key: str, change: Change) -> None:
        """Refuse: the file is the truth."""
        del change
        raise PoliciesReadOnly(
            f"{key}: policies come from {self._path}, which is the truth; change the file"
        )

    async def close(self) -> None:
        """Nothing is open."""

    async def _reload(self, on_book: OnBook) -> bool:
        """Take up the file as it is now; False where it could not be read, whatever is in it."""
        try:
            return await self._take_up(on_book)
        except Exception:
            self._trouble = "the last good ones stay in force: internal error while it was read"
            raise

    async def _take_up(self, on_book: OnBook) -> bool:
        reading = Reading()
        try:
            loaded = await asyncio.to_thread(load_groups_apart, self._path, reading)
        except asyncio.CancelledError:
            # Or the thread would keep the process from stopping until the file is read.
            reading.stop()
            raise
        except ConfigError as error:
            self._tell_refused(error)
            return not isinstance(error, GroupsUnread)
        on_book(loaded.book, loaded.hash)
        before = [self._book]
        self._book, self._hash = loaded.book, loaded.hash
        self._trouble = None
        _log.info(
            "reloaded groups file",
            file=str(self._path),
            groups=len(self._book.groups),
            hash=f"{self._hash:016x}",
        )
        # Nobody else holds it any more, and a large one takes long to free.
        await asyncio.to_thread(let_go, before)
        return True

    def _tell_refused(self, error: ConfigError) -> None:
        more = f", and {len(error.faults) - 1} more" if len(error.faults) > 1 else ""
        first = str(error.faults[0])[:FAULT_CHARS_MAX]
        trouble = f"the last good ones stay in force: {first}{more}"
        if isinstance(error, GroupsUnread) and trouble == self._trouble:
            return  # Told already, some looks ago.
        self._trouble = trouble
        for fault in error.faults[:FAULTS_TOLD_MAX]:
            _log.error("refused groups file", fault=str(fault)[:FAULT_CHARS_MAX])


def seed_of(path: Path | None) -> PolicyBook | None:
    """The book that a groups file seeds a table with; None: there is no file."""
    return None if path is None else load_groups(path)


def _stamp(path: Path) -> object:
    """What changes when a file is written or, as Kubernetes does, its link is swapped."""
    try:
        stat = path.stat()
    except OSError as error:
        return error.errno
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
