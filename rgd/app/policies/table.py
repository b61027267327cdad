"""Policies in a table that every daemon may write (`policies.source: table`).

Laws: a change that was acknowledged is in the table, made on top of everything that was acknowledged
before it; a groups file only seeds what the table lacks, a tombstone is no lack; a table that cannot
be reached leaves the policies in force as they are.
How: a change is a compare-and-set (`ledger`): its record is written and then waited for, until it is
read back from the topic. If another daemon was faster, the change is made again on what that one
wrote. Where a record that does not count stands last in the topic, and so would be all that is left
by a compaction, a daemon writes what counts once more.

Reaching Pulsar is the `PolicyStore`'s business.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

import structlog

from rgd.app.policies.ledger import Ledger
from rgd.app.policies.source import OnBook
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.records import Change, PolicyRecord, records_of
from rgd.ports.exchange import ExchangeClosed, ExchangeDown, PolicyStore
from rgd.wire.errors import WireError
from rgd.wire.policies import decode_policy, encode_policy

#: How often a change is made again because another daemon was faster; each time somebody's change
#: got through, so so many in a row mean a crowd on one policy.
TRIES_MAX: Final = 20
#: After another daemon's change lost to one of ours, so long we wait with the next one of that policy:
#: or who is nearer to the broker might win for ever.
COURTESY_S: Final = 0.03
#: The longest a record that was written may take until it is read back.
READ_BACK_S: Final = 4.0
#: Records on their way to the table at once; further ones wait. Below what the Pulsar client takes.
PUTS_MAX: Final = 64
#: Of them, the groups file's: a large one must not keep changes waiting.
SEEDS_MAX: Final = 48
#: More records than this are decoded in a thread: inline they would keep requests waiting.
INLINE_RECORDS_MAX: Final = 20
#: Records that are taken in at a stretch, about a millisecond.
TAKE_SLICE: Final = 500
#: Pause before seeds that the table did not take are written again.
RESEED_S: Final = 1.0
#: How often keys are looked for whose last record does not count.
REPAIR_S: Final = 1.0
#: Who wrote one of the two records repairs at the second look; the others one of so many looks later,
#: in case both are gone.
_BYSTANDERS_LOOKS: Final = 8
#: Of many policies of which something is to be said, so many are named in the log.
_NAMED_MAX: Final = 5

_log = structlog.get_logger("rgd.policies")


@dataclass(frozen=True, slots=True)
class _Written:
    """A record that was written here, and whoever waits to know what became of it."""

    revision: int
    value: bytes
    #: Whether it counts; None: nobody reads any more.
    answer: asyncio.Future[bool | None]

    def outcome(self, record: PolicyRecord, value: bytes, *, counts: bool) -> bool | None:
        """What the next record of its key says of it; None: nothing."""
        if value == self.value:
            return counts
        # Somebody was faster: no need to wait for ours.
        return False if counts and record.revision >= self.revision else None


class TablePolicies:
    """Policies in a table that every daemon may write.

    Args:
        store: the table.
        writer: this broker's name.
        seed: what a groups file says; in force until the table says otherwise.
        prepare: makes the table's place, where that may be needed.
        repair_s: how often misplaced records are looked for.
    """

    def __init__(
        self,
        store: PolicyStore,
        writer: str,
        seed: PolicyBook,
        *,
        prepare: Callable[[], Awaitable[None]],
        repair_s: float = REPAIR_S,
    ) -> None:
        self._store = store
        self._writer = writer
        self._prepare = prepare
        self._repair_s = repair_s
        self._book = seed
        self._seeds = {record.key: record for record in records_of(seed, writer)}
        self._ledger = Ledger(self._seeds.values())
        self._on_book: OnBook | None = None
        self._is_open = False
        #: By key, one at a time.
        self._unread: dict[str, _Written] = {}
        #: Keys under which another daemon's change has just lost to what was known.
        self._rivals: set[str] = set()
        self._putting: set[asyncio.Task[None]] = set()
        self._is_following = False
        self._puts = asyncio.Semaphore(PUTS_MAX)
        #: Two changes of one key wait for one another here, and need not meet in the table.
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        #: Set when records came, the written seeds perhaps.
        self._seed_read = asyncio.Event()
        self._trouble: str | None = None

    #: Before the table is read, the groups file's policies hold.
    is_settled = True

    @property
    def trouble(self) -> str | None:
        """Why the table lacks what the groups file has; None: it lacks nothing."""
        return self._trouble

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
        await self._prepare()
        await self._take_all(await self._store.open())
        self._is_open = True

    async def follow(self, on_book: OnBook) -> None:
        """Tell of every change until cancelled, seed what the table lacks, repair what is misplaced.

        Raises:
            ExchangeClosed: the table was closed, or is not open.
        """
        self._on_book = on_book
        on_book(self._book, 0)
        closed: ExchangeClosed | None = None
        self._is_following = True
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(self._seed()), tasks.create_task(self._repair())]
                try:
                    while True:
                        await self._take_all(await self._store.changes())
                except ExchangeClosed as error:
                    closed = error
                for task in beside:
                    task.cancel()
        finally:
            self._is_following = False
            for written in self._unread.values():
                if not written.answer.done():
                    written.answer.set_result(None)
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
                    raise ExchangeDown("the policies table was not reached yet; try again")
                value = change(self._ledger.value(key))
                if await self._write(self._ledger.next(key, value, self._writer)):
                    return
        raise ExchangeDown(
            f"{key}: other daemons changed it meanwhile, {TRIES_MAX} times in a row; try again"
        )

    async def close(self) -> None:
        """Leave the table."""
        await self._store.close()

    async def _write(self, record: PolicyRecord) -> bool:
        """Write a record and wait until it is read back; whether it counts."""
        value = encode_policy(record)
        answer: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        self._unread[record.key] = _Written(record.revision, value, answer)
        putting = asyncio.get_running_loop().create_task(self._put(record.key, value))
        self._putting.add(putting)
        putting.add_done_callback(self._on_put)
        try:
            async with asyncio.timeout(READ_BACK_S):
                # Read back it is as good as acknowledged.
                waiting: set[asyncio.Future[Any]] = {putting, answer}
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    putting.result()
                counts = await answer
        except TimeoutError as error:
            raise ExchangeDown(
                f"{record.key} was written and not read back within {READ_BACK_S:g} s; "
                "it may still come into force"
            ) from error
        except ExchangeDown as error:
            raise ExchangeDown(f"{error}; {record.key} may still come into force") from error
        finally:
            del self._unread[record.key]
        if counts is None:
            raise ExchangeDown(f"the daemon stops; {record.key} may still come into force")
        return counts

    def _on_put(self, putting: asyncio.Task[None]) -> None:
        self._putting.discard(putting)
        if not putting.cancelled():
            putting.exception()  # it was told to whoever waited, if anybody still did

    async def _put(self, key: str, value: bytes) -> None:
        async with self._puts:
            await self._store.put(key, value)

    # Reading.

    async def _take_all(self, changes: Sequence[tuple[str, bytes]]) -> None:
        """Take records in, in order; then tell of the new book, once, and those who wait."""
        if len(changes) > INLINE_RECORDS_MAX:
            read = await asyncio.to_thread(_decoded, changes)
        else:
            read = _decoded(changes)
        is_news = False
        answers: list[tuple[_Written, bool]] = []
        for start in range(0, len(read), TAKE_SLICE):
            if start:
                await asyncio.sleep(0)
            for record, value in read[start : start + TAKE_SLICE]:
                is_news |= self._take(record, value, answers)
        self._seed_read.set()
        if is_news:
            self._book = self._ledger.book()
            if self._on_book is not None:
                self._on_book(self._book, 0)
        for written, counts in answers:
            if not written.answer.done():
                written.answer.set_result(counts)

    def _take(
        self, record: PolicyRecord, value: bytes, answers: list[tuple[_Written, bool]]
    ) -> bool:
        """Take one record in, and note what it says of one that was written here; whether it is news."""
        taken = self._ledger.take(record)
        if record.writer != self._writer and record.key in self._ledger.misplaced:
            self._rivals.add(record.key)
        if (written := self._unread.get(record.key)) is not None:
            outcome = written.outcome(record, value, counts=taken.counts)
            if outcome is not None:
                answers.append((written, outcome))
        return taken.is_news

    # Seeding.

    async def _seed(self) -> None:
        """Write what the groups file has and the table lacks, until it lacks nothing."""
        count = len(self._ledger.unseeded)
        while self._ledger.unseeded:
            lacking = iter([self._seeds[key] for key in self._ledger.unseeded])
            async with asyncio.TaskGroup() as tasks:
                for _ in range(SEEDS_MAX):
                    tasks.create_task(self._put_seeds(lacking))
            is_written = next(lacking, None) is None
            if not is_written or not await self._are_seeds_read():
                await asyncio.sleep(RESEED_S)
        self._trouble = None
        if count:
            _log.info("seeded the policies table from the groups file", policies=count)
        await self._tell_differences()

    async def _put_seeds(self, lacking: Iterable[PolicyRecord]) -> None:
        """Write seeds until there are none, or the table takes no more."""
        for record in lacking:
            if record.key not in self._ledger.unseeded:
                continue  # another daemon has the same file
            try:
                await self._put(record.key, encode_policy(record))
            except ExchangeClosed:
                return
            except ExchangeDown as error:
                lacks = len(self._ledger.unseeded)
                self._trouble = f"{lacks} of the groups file's are not in the table yet: {error}"
                return
            # A table in memory answers at once: let requests in between.
            await asyncio.sleep(0)

    async def _are_seeds_read(self) -> bool:
        """Wait until all that was written is read back; False when nothing comes any more."""
        while self._ledger.unseeded:
            self._seed_read.clear()
            try:
                async with asyncio.timeout(READ_BACK_S):
                    await self._seed_read.wait()
            except TimeoutError:
                return False
        return True

    async def _tell_differences(self) -> None:
        """Say where the table has other policies than the groups file."""
        seeds, self._seeds = self._seeds, {}
        differing = await asyncio.to_thread(
            lambda: [key for key, seed in seeds.items() if self._ledger.value(key) != seed.value]
        )
        if differing:
            _log.warning(
                "the policies table differs from the groups file, and the table counts",
                policies=len(differing),
                such_as=sorted(differing)[:_NAMED_MAX],
            )

    # Repair.

    async def _repair(self) -> None:
        """Write again what counts where another record stands last for longer than a moment."""
        looks: dict[str, int] = {}
        while True:
            await asyncio.sleep(self._repair_s)
            misplaced = self._ledger.misplaced
            looks = {key: looks.get(key, 0) + 1 for key in misplaced}
            due = [key for key in misplaced if looks[key] > self._patience(key)]
            with suppress(
                ExchangeClosed, ExchangeDown
            ):  # what is not mended now is at the next look
                for key in due:
                    await self._put_again(key)

    async def _put_again(self, key: str) -> None:
        """Make what counts stand last; with a new revision, for who read only the other record."""
        if key in self._ledger.misplaced:
            record = self._ledger.next(key, self._ledger.value(key), self._writer)
            _log.info("wrote a policy again that another record would have hidden", key=key)
            await self._put(key, encode_policy(record))

    def _patience(self, key: str) -> int:
        """At how many looks a misplaced key is left to those who are nearer to it."""
        known = self._ledger.get(key)
        writers = {self._ledger.misplaced[key].writer, known.writer if known else ""}
        if self._writer in writers:
            return 1
        return 2 + zlib.crc32(self._writer.encode()) % _BYSTANDERS_LOOKS


def _decoded(changes: Iterable[tuple[str, bytes]]) -> list[tuple[PolicyRecord, bytes]]:
    """The records that can be read, with their bytes; others are told and left out."""
    read = []
    refused: list[str] = []
    for key, value in changes:
        try:
            read.append((decode_policy(key, value), value))
        except WireError as error:
            refused.append(f"{key}: {error}")
    if refused:
        _log.warning("refused policy records", records=len(refused), such_as=refused[:_NAMED_MAX])
    return read
