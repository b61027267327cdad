"""Where the policies in force come from: a table that all daemons write, or a file.

Laws: a lower revision never wins; a groups file only seeds what the table lacks;
a file that does not parse is refused whole and the old policies stay in force.

`TablePolicies` follows a `PolicyStore`; `FilePolicies` follows a file, and then
admin writes are refused. Both give the daemon a new book through `on_book`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

import structlog

from rgd.config.groups import book_hash, load_groups
from rgd.core.errors import GroupInUse, PoliciesReadOnly, UnknownGroup
from rgd.core.policies import records
from rgd.core.policies.book import EMPTY_BOOK, PolicyBook
from rgd.core.policies.model import Group
from rgd.core.policies.records import PolicyRecord, PolicyRecords, Value
from rgd.errors import ConfigError
from rgd.ports.exchange import ExchangeDown, PolicyStore
from rgd.wire.errors import WireError
from rgd.wire.policies import decode_policy, encode_policy

#: How often the groups file is looked at.
FILE_POLL_S: Final = 1.0

#: Hears of each new book, and the policies file's hash (0: no file).
OnBook = Callable[[PolicyBook, int], None]

_log = structlog.get_logger("rgd.policies")


class Policies(Protocol):
    """A source of policies."""

    def book(self) -> PolicyBook:
        """What is in force."""

    async def follow(self, on_book: OnBook) -> None:
        """Tell of every change until cancelled."""

    async def put(self, key: str, value: Value) -> None:
        """Write one policy; in force here when it returns.

        Raises:
            PoliciesReadOnly: a file owns the policies.
            ExchangeDown: the table cannot be written now.
        """

    async def close(self) -> None:
        """Let go of what is open."""


class TablePolicies:
    """Policies in a table that every daemon may write."""

    def __init__(
        self,
        store: PolicyStore,
        writer: str,
        seed: PolicyBook,
        *,
        prepare: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._prepare = prepare
        self._writer = writer
        self._seed = seed
        self._records = PolicyRecords()
        self._book = seed
        self._on_book: OnBook | None = None
        self._is_open = False
        #: Two writes of one key here must not get the same revision.
        self._writing = asyncio.Lock()

    def book(self) -> PolicyBook:
        """The table's policies; before it could be read, the groups file's."""
        return self._book

    async def open(self) -> None:
        """Read the table, and seed what it lacks.

        Raises:
            ExchangeDown: it cannot be reached now.
        """
        await self._prepare()
        for key, value in (await self._store.open()).items():
            self._take(key, value)
        self._is_open = True
        for record in records.records_of(self._seed, self._writer):
            if record.key not in self._records:
                await self._write(record)
        self._publish()

    async def follow(self, on_book: OnBook) -> None:
        """Tell of every change until cancelled."""
        self._on_book = on_book
        self._publish()
        while True:
            changes = await self._store.changes()
            # All of them are taken in, whether or not the first one is news.
            news = [self._take(key, value) for key, value in changes]
            if any(news):
                self._publish()

    async def put(self, key: str, value: Value) -> None:
        """Write one policy on top of what is known of it."""
        if not self._is_open:
            raise ExchangeDown("the policies table was not reached yet; try again")
        async with self._writing:
            await self._write(self._records.next(key, value, self._writer))
        self._publish()

    async def close(self) -> None:
        """Leave the table."""
        await self._store.close()

    async def _write(self, record: PolicyRecord) -> None:
        await self._store.put(record.key, encode_policy(record))
        self._records.apply(record)

    def _take(self, key: str, value: bytes) -> bool:
        try:
            record = decode_policy(key, value)
        except WireError as error:
            _log.warning("refused policy record", key=key, reason=str(error))
            return False
        return self._records.apply(record)

    def _publish(self) -> None:
        self._book = self._records.book() if self._is_open else self._seed
        if self._on_book is not None:
            self._on_book(self._book, 0)


class FilePolicies:
    """Policies in a file that is the truth, such as a mounted ConfigMap."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: object = None
        self._book = load_groups(path)

    def book(self) -> PolicyBook:
        """The file's policies, as last read without a fault."""
        return self._book

    async def follow(self, on_book: OnBook) -> None:
        """Read the file again whenever it changes."""
        self._stamp = await asyncio.to_thread(_stamp, self._path)
        on_book(self._book, book_hash(self._book))
        while True:
            await asyncio.sleep(FILE_POLL_S)
            stamp = await asyncio.to_thread(_stamp, self._path)
            if stamp != self._stamp:
                self._stamp = stamp
                await self._reload(on_book)

    async def put(self, key: str, value: Value) -> None:
        """Refuse: the file is the truth."""
        del value
        raise PoliciesReadOnly(
            f"{key}: policies come from {self._path}, which is the truth; change the file"
        )

    async def close(self) -> None:
        """Nothing is open."""

    async def _reload(self, on_book: OnBook) -> None:
        try:
            self._book = await asyncio.to_thread(load_groups, self._path)
        except ConfigError as error:
            for fault in error.faults:
                _log.error("refused groups file", fault=str(fault))
            return
        _log.info("reloaded groups file", file=str(self._path), groups=len(self._book.groups))
        on_book(self._book, book_hash(self._book))


async def delete_group(policies: Policies, name: str) -> None:
    """Delete a group that nothing is attached to.

    Raises:
        UnknownGroup: there is no such group.
        GroupInUse: something is attached to it.
    """
    book = policies.book()
    if name not in book.groups:
        raise UnknownGroup(name)
    attached = book.attached_to(name)
    for what, names in (
        ("tenant", attached.tenants),
        ("namespace", attached.namespaces),
        ("topic", attached.topics),
    ):
        if names:
            raise GroupInUse(name, f"{what} {next(iter(names))!r}")
    await policies.put(records.GROUP + name, None)


async def put_group(policies: Policies, group: Group) -> None:
    """Create or replace a group."""
    await policies.put(records.GROUP + group.name, group)


async def attach_namespace(policies: Policies, namespace: str, group: str | None) -> None:
    """Attach a namespace to a group that exists, or to none.

    Raises:
        UnknownGroup: there is no such group.
    """
    if group is not None and group not in policies.book().groups:
        raise UnknownGroup(group)
    await policies.put(records.NAMESPACE + namespace, group)


def seed_of(path: Path | None) -> PolicyBook:
    """The book that a groups file seeds a table with."""
    return EMPTY_BOOK if path is None else load_groups(path)


def _stamp(path: Path) -> object:
    """What changes when a file is written or, as Kubernetes does, its link is swapped."""
    try:
        stat = path.stat()
    except OSError as error:
        return error.errno
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
