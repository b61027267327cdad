"""Policies in a table that every daemon may write (`policies.source: table`).

Laws: an acknowledged change is in the table, on top of everything that was acknowledged
before it. A groups file only adds keys that the table lacks, and a tombstone is not a missing key. While the table
is unreachable, the policies in force stay, and they count as old until it is read again. No
record, whatever its content, stops the daemon or makes it write endlessly.

How: a change is a compare-and-set (`ledger`): the daemon writes its record and waits until it
reads the record back from the topic. If another daemon was faster, the change is applied again on
top of that record. A table whose connection was
lost is opened again and read from its start; missing records are then written to it, and where
a losing record is last in the topic, the winning one is written again (`mending`). The known
content is stored on disk (`keeping`). A daemon that starts while the table is unreachable uses it,
and adds keys of the groups file that it lacks.

The `PolicyStore` reaches Pulsar, and detects a lost connection.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

import structlog

from rgd.app.audit import tell_written
from rgd.app.policies.keeping import Keeping, kept_records
from rgd.app.policies.ledger import Ledger
from rgd.app.policies.mending import NAMED_MAX, Mending
from rgd.app.policies.mending import PUTS_MAX as MENDED_MAX
from rgd.app.policies.pauses import Pauses
from rgd.app.policies.refusals import Refusals, shown
from rgd.app.policies.source import Figures, OnSnapshot
from rgd.app.policies.writing import PUTS_MAX, Writing
from rgd.backoff import Backoff
from rgd.core.policies.records import KEYS_MAX, Change, Value, records_of
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.ports.exchange import ExchangeClosed, ExchangeDown, ExchangeError, PolicyStore
from rgd.ports.policies import PoliciesKept
from rgd.wire.errors import UnknownVersion, WireError
from rgd.wire.policies import decode_policy, policy_text

#: Most attempts of a change because another daemon was faster. Each time one change succeeded, so this
#: many in a row mean heavy contention on one policy.
TRIES_MAX: Final = 20
#: Records that are read and applied in one go: a whole table at once would hold up reports and cuts for seconds.
TAKE_SLICE: Final = 1_000
#: A table that was open for this long is opened again without delay.
STEADY_S: Final = 10.0

#: As a daemon has them.
PAUSES: Final = Pauses()

assert MENDED_MAX < PUTS_MAX

_log = structlog.get_logger("rgd.policies")


class TablePolicies:
    """Policies in a table that every daemon may write.

    Args:
        store: the table.
        writer: this broker's name.
        seed: the policies of a groups file, in force until the table overrides them. None: there is no file.
        prepare: creates the table's namespace, where that may be needed.
        kept: storage across restarts.
        pauses: how long its parts wait.
        resumes: another plane of this daemon said already what the groups file differs in.
    """

    def __init__(  # noqa: PLR0913 -- all but three are options, by keyword
        self,
        store: PolicyStore,
        writer: str,
        seed: PolicySnapshot | None,
        *,
        prepare: Callable[[], Awaitable[None]],
        kept: PoliciesKept,
        pauses: Pauses = PAUSES,
        resumes: bool = False,
    ) -> None:
        self._store = store
        self._writer = writer
        self._prepare = prepare
        self._refusals = Refusals()
        seeds = [*records_of(EMPTY_SNAPSHOT if seed is None else seed, writer)]
        #: The groups file's, as long as nothing was said of what differs.
        self._untold = [] if resumes else seeds
        known = kept_records(kept, self._refusals)
        self._ledger = Ledger(seeds, known or ())
        #: Until a change, the groups file's own snapshot object, not a copy of its content.
        self._snapshot = self._ledger.snapshot() if known or seed is None else seed
        #: A description of the policies in force.
        self._in_force = "nothing" if seed is None else "the groups file"
        if known is not None:
            self._in_force = "what an earlier run knew last"
        #: Whether the table was ever read, by this run or an earlier one, or there is a groups file.
        self.is_known = known is not None or seed is not None
        for key, reason in self._ledger.unusable:
            self._refusals.add(key, reason)
        self._writing = Writing(store, read_back_s=pauses.read_back_s)
        self._mending = Mending(self._ledger, writer, self._writing.put, self._refusals, pauses)
        self._keeping = Keeping(kept, self._ledger.all, every_s=pauses.keep_s)
        self._on_snapshot: OnSnapshot | None = None
        #: The last reported snapshot and hash.
        self._reported: tuple[PolicySnapshot, int] | None = None
        #: Whether `_snapshot` lacks applied records.
        self._is_outdated = False
        self._is_open = False
        #: Why the table is not open, as text.
        self._away: str | None = "the table was not read yet"
        self._is_unprepared = False
        #: How often an open table was lost.
        self.lost = 0
        #: Whether the last attempt to open it failed or did not last, and how long the next one waits.
        self._is_tried = False
        self._backoff = Backoff.with_own_dice(
            first_s=pauses.reach_s, pause_s_max=pauses.reach_s_max
        )
        self._opened_at_s = 0.0
        self._is_following = False
        #: Serialises changes of one key here, so that they do not conflict in the table.
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    #: Stored policies, or the groups file's, are in force before the table is read.
    is_settled = True

    @property
    def trouble(self) -> str | None:
        """Why the policies may be old here or elsewhere; None if they are not."""
        away = f"{self._away}; in force is {self._in_force}" if self._away else None
        # Beside it, that policies could not be written says nothing new.
        troubles = (away, self._mending.trouble, self._keeping.trouble)
        return "; ".join(why for why in troubles if why) or None

    def figures(self) -> Figures:
        """The counters so far."""
        return Figures(
            is_old=not self._is_open,
            refused=self._refusals.count + self._store.dropped,
            written_back=self._mending.written_back,
            lost=self.lost,
            lacking=len(self._ledger.lacking) if self._is_open else 0,
            misplaced=len(self._ledger.misplaced),
        )

    @property
    def hash(self) -> int:
        """The hash of the policies in force; 0 if none are known."""
        return self._ledger.hash if self.is_known else 0

    def snapshot(self) -> PolicySnapshot:
        """The table's policies, and those of the groups file that the table lacks."""
        return self._snapshot

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
            # The namespace may exist already; then the table can be opened.
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

    async def follow(self, on_snapshot: OnSnapshot) -> None:
        """Report every change until cancelled, write missing records, repair misplaced ones.

        Raises:
            ExchangeClosed: the table was closed.
        """
        self._on_snapshot = on_snapshot
        self._reported = None
        self._report()
        try:
            async with _beside(self._keeping.run()):
                while True:
                    await self._reach()
                    await self._follow_until_lost()
        except ExchangeClosed:
            raise
        except Exception:
            self._note_broken()
            raise

    async def change(self, key: str, change: Change) -> None:
        """Change one policy on top of everything that was acknowledged before.

        Raises:
            ExchangeDown: the table cannot be reached, or others change the same policy all the time.
        """
        async with self._changing.setdefault(key, asyncio.Lock()):
            for _ in range(TRIES_MAX):
                if not self._is_following:
                    away = self._away if self.lost else "the policies table was not reached yet"
                    raise ExchangeDown(f"{away}; try again")
                if self._ledger.is_too_many(key):
                    raise ExchangeDown(
                        f"{shown(key)}: the table has {KEYS_MAX} policies, its limit, with deleted ones "
                        "(docs/policies.md says how to empty it)"
                    )
                known = self._ledger.value(key)
                value = change(known)
                if await self._writing.write(self._ledger.next(key, value, self._writer)):
                    tell_written("policy changed", key, _shown(key, known), _shown(key, value))
                    return
        raise ExchangeDown(
            f"{key}: other daemons changed it meanwhile, {TRIES_MAX} times in a row; try again"
        )

    async def close(self) -> None:
        """Leave the table."""
        await self._store.close()
        await self._keeping.finish()

    # Reaching the table.

    def _report(self) -> None:
        """Report the snapshot in force and its hash, if either has changed."""
        current = (self._snapshot, self.hash)
        if self._on_snapshot is not None and (
            self._reported is None
            or self._reported[0] is not current[0]
            or self._reported[1] != current[1]
        ):
            self._reported = current
            self._on_snapshot(*current)

    async def _reach(self) -> None:
        """Open the table; log once that it is unreachable, and once that it is back."""
        is_logged = False
        while not self._is_open:
            await asyncio.sleep(self._backoff.next_s() if self._is_tried else 0)
            self._is_tried = True
            try:
                await self.open()
            except ExchangeDown as error:
                if not is_logged:
                    _log.warning("cannot reach policies table", reason=str(error))
                is_logged = True
                self._away = f"the table cannot be reached: {error}"
        if is_logged or self.lost:
            _log.info("reached policies table")

    def _note_open(self) -> None:
        self._is_open = self.is_known = True
        self._away = None
        self._in_force = "what was read last"
        self._opened_at_s = asyncio.get_running_loop().time()
        self._keeping.note_change()

    def _note_broken(self) -> None:
        """Read the whole table again after an exception, which lost the records being applied."""
        self._is_outdated = True
        if self._is_open:
            self._note_lost("internal error")
        self._away = "internal error; the table is read again"

    def _note_lost(self, reason: str) -> None:
        self._is_open = False
        self.lost += 1
        if asyncio.get_running_loop().time() > self._opened_at_s + STEADY_S:
            self._is_tried = False
            self._backoff.reset()
        self._away = f"the table is lost: {reason}"
        _log.warning("lost the policies table", reason=reason)

    async def _follow_until_lost(self) -> None:
        """Apply changes while the table is open.

        Raises:
            ExchangeClosed: it was closed.
        """
        self._report()
        self._is_following = True
        try:
            async with _beside(self._mending.run(self._tell_differing)):
                while True:
                    await self._take_all(await self._store.changes())
        except ExchangeDown as error:
            self._note_lost(str(error))
        finally:
            self._is_following = False
            self._writing.give_up()

    # Reading.

    async def _take_all(self, changes: Sequence[tuple[str, bytes]]) -> None:
        """Apply records in order; then report the new snapshot once, and wake waiting writers."""
        for start in range(0, len(changes), TAKE_SLICE):
            if start:
                await asyncio.sleep(0)
            for key, value in changes[start : start + TAKE_SLICE]:
                self._is_outdated |= self._take(key, value)
        self._mending.note_read()
        self._refusals.log()
        if changes:
            self._keeping.note_change()
        if self._is_outdated:
            self._snapshot = self._ledger.snapshot()
            self._is_outdated = False
        self._report()
        self._writing.answer()

    def _take(self, key: str, value: bytes) -> bool:
        """Apply one record, and note the outcome of our own writes; whether the policies changed."""
        try:
            record = decode_policy(key, value)
        except WireError as error:
            self._refusals.add(key, str(error))
            # A record of a later rgd is left alone; any other unreadable record hides a policy.
            is_later = isinstance(error, UnknownVersion)
            (self._ledger.leave if is_later else self._ledger.hide)(key)
            return False
        if self._ledger.is_too_many(key):
            self._refusals.add(key, f"the table has {KEYS_MAX} policies, its limit")
            return False
        taken = self._ledger.take(record)
        self._writing.note(record, value, counts=taken.counts)
        return taken.is_news

    # Seeding.

    def _tell_differing(self) -> None:
        """Report differences from the groups file, once nothing is missing."""
        seeds, self._untold = self._untold, []
        differing = [one.key for one in seeds if self._ledger.value(one.key) != one.value]
        if differing:
            _log.warning(
                "the policies table differs from the groups file, and the table counts",
                policies=len(differing),
                such_as=[shown(key) for key in sorted(differing)[:NAMED_MAX]],
            )


@asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Runs work for as long as the block lasts; what the block raises of the exchange is raised as it is."""
    ended: ExchangeError | None = None
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work)
        try:
            yield
        except ExchangeError as error:
            ended = error
        task.cancel()
    if ended is not None:
        raise ended


def _shown(key: str, value: Value) -> str | None:
    return None if value is None else policy_text(key, value)
