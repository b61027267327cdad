"""Policies in a table that every daemon may write (`policies.source: table`).

Laws: a change that was acknowledged is in the table, made on top of everything that was acknowledged
before it; a groups file only seeds what the table lacks, a tombstone is no lack; a table that cannot
be reached leaves the policies in force as they are, and they count as old until it was read again; no
record, whatever is in it, ends the daemon or is written by it for ever.

How: a change is a compare-and-set (`ledger`): its record is written and then waited for, until it is
read back from the topic. If another daemon was faster, the change is made again on what that one
wrote. A table whose connection was lost is opened again and read from its start; what it then lacks is
written to it (`filling`). Where a record that does not count stands last in the topic, a daemon writes
what counts once more (`repairing`). What is known is kept on disk (`keeping`), and a daemon that
starts while the table is away has that in force, and of the groups file what is not in it.

Reaching Pulsar, and noticing that it was lost, is the `PolicyStore`'s business.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import structlog

from rgd.app.policies.filling import NAMED_MAX, SEEDS_MAX, Filling
from rgd.app.policies.keeping import Keeping, kept_records
from rgd.app.policies.ledger import Ledger
from rgd.app.policies.refusals import Refusals, shown
from rgd.app.policies.repairing import REPAIR_S, Repairing
from rgd.app.policies.source import Figures, OnBook
from rgd.app.policies.writing import PUTS_MAX, Writing
from rgd.core.policies.book import EMPTY_BOOK, PolicyBook
from rgd.core.policies.records import KEYS_MAX, Change, PolicyRecord, records_of
from rgd.ports.exchange import ExchangeClosed, ExchangeDown, PolicyStore
from rgd.ports.policies import PoliciesKept
from rgd.wire.errors import UnknownVersion, WireError
from rgd.wire.policies import decode_policy, policy_digest

#: How often a change is made again because another daemon was faster; each time somebody's change
#: got through, so so many in a row mean a crowd on one policy.
TRIES_MAX: Final = 20
#: After another daemon's change lost to one of ours, so long we wait with the next one of that policy:
#: or who is nearer to the broker might win for ever.
COURTESY_S: Final = 0.03
#: More records than this are decoded in a thread: inline they would keep requests waiting.
INLINE_RECORDS_MAX: Final = 20
#: Records that are taken in at a stretch, about a millisecond.
TAKE_SLICE: Final = 250
#: Before the first, second, ... try to reach the table; the last one for all that follow.
BACKOFF_S: Final = (0.0, 0.1, 0.2, 0.5, 1.0)
#: A table that was open for so long is opened again without delay.
STEADY_S: Final = 10.0

assert SEEDS_MAX < PUTS_MAX

_log = structlog.get_logger("rgd.policies")


class _Read(NamedTuple):
    """A record as it came, and what was made of it beforehand."""

    key: str
    value: bytes
    #: What it says; or why it says nothing.
    record: PolicyRecord | WireError
    digest: int = 0


class TablePolicies:
    """Policies in a table that every daemon may write.

    Args:
        store: the table.
        writer: this broker's name.
        seed: what a groups file says; in force until the table says otherwise. None: there is no file.
        prepare: makes the table's place, where that may be needed.
        kept: where what is known outlives the process. None: nowhere.
        repair_s: how often misplaced records are looked for.
    """

    def __init__(
        self,
        store: PolicyStore,
        writer: str,
        seed: PolicyBook | None,
        *,
        prepare: Callable[[], Awaitable[None]],
        kept: PoliciesKept | None = None,
        repair_s: float = REPAIR_S,
    ) -> None:
        self._store = store
        self._writer = writer
        self._prepare = prepare
        self._refusals = Refusals()
        seeds = records_of(EMPTY_BOOK if seed is None else seed, writer)
        self._seeds = {record.key: record for record in seeds}
        known = None if kept is None else kept_records(kept, self._refusals)
        self._ledger = Ledger(self._seeds.values(), known or ())
        #: Until it changes, a groups file's book is that of the file, not one of the same content.
        self._book = self._ledger.book() if known or seed is None else seed
        self._in_force = _in_force(known, seed)
        self._is_known = known is not None or seed is not None
        for key, reason in self._ledger.unusable:
            self._refusals.add(key, reason)
        self._writing = Writing(store)
        put = self._writing.put
        self._filling = Filling(self._ledger, writer, put, self._refusals)
        self._repairing = Repairing(self._ledger, writer, put, self._refusals, every_s=repair_s)
        self._keeping = None if kept is None else Keeping(kept, self._ledger.known)
        self._on_book: OnBook | None = None
        #: What was told last.
        self._told: tuple[PolicyBook, int] | None = None
        #: Whether `_book` lacks something of what was taken in.
        self._is_book_old = False
        self._is_open = False
        #: Why the table is not open; in words.
        self._away: str | None = "the table was not read yet"
        self._is_unprepared = False
        #: How often a table that was open was lost.
        self.lost = 0
        #: Tries in a row to open it that failed or did not last.
        self._tries = 0
        self._opened_at_s = 0.0
        #: Keys under which another daemon's change has just lost to what was known.
        self._rivals: set[str] = set()
        self._is_following = False
        #: Two changes of one key wait for one another here, and need not meet in the table.
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    #: What is kept, or the groups file's, holds before the table is read.
    is_settled = True

    @property
    def is_known(self) -> bool:
        """Whether the table was ever read, by this run or an earlier one, or there is a groups file."""
        return self._is_known

    @property
    def trouble(self) -> str | None:
        """Why what is in force may be old, or is not everywhere; None: all is well."""
        away = f"{self._away}; in force is {self._in_force}" if self._away else None
        kept = None if self._keeping is None else self._keeping.trouble
        return "; ".join(why for why in (away, self._filling.trouble, kept) if why) or None

    def figures(self) -> Figures:
        """What was counted so far."""
        return Figures(
            is_old=not self._is_open,
            refused=self._refusals.count + self._store.dropped,
            written_back=self._filling.written_back,
            lost=self.lost,
        )

    def book(self) -> PolicyBook:
        """The table's policies, and of the groups file what the table lacks."""
        return self._book

    async def open(self) -> None:
        """Read the table; after ExchangeDown it may be called again.

        Raises:
            ExchangeDown: it cannot be reached now.
        """
        if self._is_open:
            return
        unprepared: ExchangeDown | None = None
        try:
            await self._prepare()
        except ExchangeDown as error:
            # Perhaps there was nothing to make: then the table can be opened all the same.
            unprepared = error
        try:
            records = await self._store.open()
        except ExchangeDown as error:
            raise (unprepared or error) from error
        if unprepared is not None and not self._is_unprepared:
            _log.warning("did not prepare the policies table", reason=str(unprepared))
        self._is_unprepared = unprepared is not None
        self._ledger.doubt()
        await self._take_all(records)
        self._note_open()

    async def follow(self, on_book: OnBook) -> None:
        """Tell of every change until cancelled, seed what the table lacks, repair what is misplaced.

        Raises:
            ExchangeClosed: the table was closed.
        """
        self._on_book = on_book
        self._told = None
        self._tell()
        closed: ExchangeClosed | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                keeping = None
                if self._keeping is not None:
                    keeping = tasks.create_task(self._keeping.run())
                try:
                    while True:
                        await self._reach()
                        await self._follow_until_lost()
                except ExchangeClosed as error:
                    closed = error
                if keeping is not None:
                    keeping.cancel()
        except Exception:
            self._note_broken()
            raise
        finally:
            self._stop_following()
        raise closed

    async def change(self, key: str, change: Change) -> None:
        """Change one policy on top of everything that was acknowledged before.

        Raises:
            ExchangeDown: the table cannot be reached, or others change the same policy all the time.
        """
        async with self._changing.setdefault(key, asyncio.Lock()):
            if key in self._rivals:
                self._rivals.discard(key)
                await asyncio.sleep(COURTESY_S)
            for _ in range(TRIES_MAX):
                if not self._is_following:
                    away = self._away if self.lost else "the policies table was not reached yet"
                    raise ExchangeDown(f"{away}; try again")
                if self._ledger.is_too_many(key):
                    raise ExchangeDown(
                        f"{shown(key)}: the table has {KEYS_MAX} policies, its limit"
                    )
                value = change(self._ledger.value(key))
                if await self._writing.write(self._ledger.next(key, value, self._writer)):
                    return
        raise ExchangeDown(
            f"{key}: other daemons changed it meanwhile, {TRIES_MAX} times in a row; try again"
        )

    async def close(self) -> None:
        """Leave the table."""
        await self._store.close()
        if self._keeping is not None:
            await self._keeping.finish()

    # Reaching the table.

    @property
    def _hash(self) -> int:
        """The hash of what is in force; 0 where that is not known."""
        return self._ledger.hash if self._is_known else 0

    def _tell(self) -> None:
        """Tell of the book in force and its hash, if either is news."""
        told = (self._book, self._hash)
        if self._on_book is not None and (
            self._told is None or self._told[0] is not told[0] or self._told[1] != told[1]
        ):
            self._told = told
            self._on_book(*told)

    async def _reach(self) -> None:
        """Open the table; say once that it cannot be reached, and once that it can."""
        is_told = False
        while not self._is_open:
            await asyncio.sleep(BACKOFF_S[min(self._tries, len(BACKOFF_S) - 1)])
            self._tries += 1
            try:
                await self.open()
            except ExchangeDown as error:
                if not is_told:
                    _log.warning("cannot reach policies table", reason=str(error))
                is_told = True
                self._away = f"the table cannot be reached: {error}"
        if is_told or self.lost:
            _log.info("reached policies table")

    def _note_open(self) -> None:
        self._is_open = self._is_known = True
        self._away = None
        self._in_force = "what was read last"
        self._opened_at_s = asyncio.get_running_loop().time()
        if self._keeping is not None:
            self._keeping.note_change()

    def _note_broken(self) -> None:
        """What was being taken in when something raised is gone: have all of it read again."""
        self._is_book_old = True
        if self._is_open:
            self._note_lost("internal error")
        self._away = "internal error; the table is read again"

    def _note_lost(self, reason: str) -> None:
        self._is_open = False
        self.lost += 1
        if asyncio.get_running_loop().time() > self._opened_at_s + STEADY_S:
            self._tries = 0
        self._away = f"the table is lost: {reason}"
        _log.warning("lost the policies table", reason=reason)

    async def _follow_until_lost(self) -> None:
        """Take in changes while the table is open.

        Raises:
            ExchangeClosed: it was closed.
        """
        self._tell()
        self._is_following = True
        closed: ExchangeClosed | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(self._fill()), tasks.create_task(self._repairing.run())]
                try:
                    while True:
                        await self._take_all(await self._store.changes())
                except ExchangeDown as error:
                    self._note_lost(str(error))
                except ExchangeClosed as error:
                    closed = error
                for task in beside:
                    task.cancel()
        finally:
            self._stop_following()
        if closed is not None:
            raise closed

    def _stop_following(self) -> None:
        self._is_following = False
        self._writing.give_up()

    # Reading.

    async def _take_all(self, changes: Sequence[tuple[str, bytes]]) -> None:
        """Take records in, in order; then tell of the new book, once, and those who wait."""
        if len(changes) > INLINE_RECORDS_MAX:
            read = await asyncio.to_thread(_decoded, changes)
        else:
            read = _decoded(changes)
        for start in range(0, len(read), TAKE_SLICE):
            if start:
                await asyncio.sleep(0)
            for one in read[start : start + TAKE_SLICE]:
                self._is_book_old |= self._take(one)
        self._filling.note_read()
        self._refusals.tell()
        if read and self._keeping is not None:
            self._keeping.note_change()
        if self._is_book_old:
            self._book = self._ledger.book()
            self._is_book_old = False
        self._tell()
        self._writing.answer()

    def _take(self, read: _Read) -> bool:
        """Take one record in, and note what it says of one that was written here; whether it is news."""
        record = read.record
        if isinstance(record, WireError):
            self._refusals.add(read.key, str(record))
            # What a later rgd has written is none of our business; other rubbish hides a policy.
            is_later = isinstance(record, UnknownVersion)
            (self._ledger.leave if is_later else self._ledger.hide)(read.key)
            return False
        if self._ledger.is_too_many(record.key):
            self._refusals.add(record.key, f"the table has {KEYS_MAX} policies, its limit")
            return False
        taken = self._ledger.take(record, read.digest)
        if record.writer != self._writer and record.key in self._ledger.misplaced:
            self._rivals.add(record.key)
        self._writing.note(record, read.value, counts=taken.counts)
        return taken.is_news

    # Seeding.

    async def _fill(self) -> None:
        """Write what the table lacks, then say where it differs from the groups file."""
        await self._filling.run()
        seeds, self._seeds = self._seeds, {}
        differing = await asyncio.to_thread(
            lambda: [key for key, seed in seeds.items() if self._ledger.value(key) != seed.value]
        )
        if differing:
            _log.warning(
                "the policies table differs from the groups file, and the table counts",
                policies=len(differing),
                such_as=[shown(key) for key in sorted(differing)[:NAMED_MAX]],
            )


def _in_force(known: Sequence[PolicyRecord] | None, seed: PolicyBook | None) -> str:
    """What a start without the table has in force, in words."""
    if known is not None:
        return "what an earlier run knew last"
    return "nothing" if seed is None else "the groups file"


def _decoded(changes: Iterable[tuple[str, bytes]]) -> list[_Read]:
    """What the records say, perhaps in a thread."""
    return [_decoded_one(key, value) for key, value in changes]


def _decoded_one(key: str, value: bytes) -> _Read:
    try:
        record = decode_policy(key, value)
        return _Read(key, value, record, policy_digest(key, record.value))
    except WireError as error:
        return _Read(key, value, error)
