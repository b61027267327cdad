"""Writes what a policies table should have and has not: records that it lacks, and winning records where a losing one is last.

Laws: known records are written back unchanged, with revision and writer, deletions too; a groups file's seeds get revision 1. So
any number of daemons may do this at once, a newer record is never replaced, and daemons with different knowledge agree in the
end. After a winning record was written again, a compaction keeps it; it gets a new revision, for readers that saw only the
losing one. A key costs at most one write for each check, however often another daemon writes losing records. Nothing here raises.
How: lacking records are written at once, and each daemon begins at another position and skips those that another daemon wrote
first. Of a misplaced one the writers of the two records write it at the second check, the others some checks later, in case both
are gone.
`ledger` knows both kinds of records; `table` reaches the table.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

import structlog

from rgd.app.policies.ledger import Ledger
from rgd.app.policies.pauses import Pauses
from rgd.app.policies.refusals import Refusals, shown
from rgd.core.policies.records import PolicyRecord
from rgd.ports.exchange import ExchangeClosed, ExchangeDown
from rgd.wire.errors import WireError
from rgd.wire.policies import encode_policy

#: Most records in flight, because a large file must not delay changes.
PUTS_MAX: Final = 48
#: Most misplaced keys of one check; the others wait for the next one.
MISPLACED_MAX: Final = 1000
#: A daemon that wrote neither of the two records waits for up to so many checks more.
_BYSTANDERS_LOOKS: Final = 8
#: Most policies that one log line names, and most of one check that are logged one by one; of more only the number is logged.
NAMED_MAX: Final = 5
LOGGED_MAX: Final = 20

_log = structlog.get_logger("rgd.policies")

#: Writes a record to the table.
Put = Callable[[str, bytes], Awaitable[None]]


class Mending:
    """The lacking and the misplaced records of a table, and their writes."""

    def __init__(
        self, ledger: Ledger, writer: str, put: Put, refusals: Refusals, pauses: Pauses
    ) -> None:
        self._ledger = ledger
        self._writer = writer
        self._put = put
        self._refusals = refusals
        self._pauses = pauses
        #: Set when records arrived, maybe the written ones.
        self._is_read = asyncio.Event()
        self._crc = zlib.crc32(writer.encode())
        #: For how many checks each key was misplaced.
        self._looks: dict[str, int] = {}
        self._are_many = False
        #: Written records that the table, or its predecessor, once had.
        self.written_back = 0
        #: Why records are missing in the table; None if none are.
        self.trouble: str | None = None

    def note_read(self) -> None:
        """Note that records were applied."""
        self._is_read.set()

    async def run(self, on_filled: Callable[[], None]) -> None:
        """Write until cancelled; calls `on_filled` once nothing is lacking."""
        lacking = [record for key in self._ledger.lacking if (record := self._ledger.get(key))]
        seeds = sum(not record.revision for record in lacking)
        self._tell_lacking([record for record in lacking if record.revision])
        await self._fill()
        if seeds:
            _log.info("seeded the policies table from the groups file", policies=seeds)
        on_filled()
        while True:
            await asyncio.sleep(self._pauses.mend_s)
            self._refusals.log()
            await self._write_all(self._misplaced())

    async def _fill(self) -> None:
        """Write the lacking records until there are none."""
        while self._ledger.lacking:
            is_written = await self._write_all(self._in_order())
            if not is_written or not await self._is_all_read():
                await asyncio.sleep(self._pauses.mend_s)
        self.trouble = None

    async def _is_all_read(self) -> bool:
        """Wait until all written records are read back; False if reading has stopped."""
        while self._ledger.lacking:
            self._is_read.clear()
            try:
                async with asyncio.timeout(self._pauses.read_back_s):
                    await self._is_read.wait()
            except TimeoutError:
                return False
        return True

    async def _write_all(self, keys: Iterable[str]) -> bool:
        """Write the records of these keys, some side by side; False if the table accepts no more."""
        left = iter(keys)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(PUTS_MAX):
                tasks.create_task(self._write(left))
        return next(left, None) is None

    def _tell_lacking(self, known: list[PolicyRecord]) -> None:
        if not known:
            return
        _log.warning(
            "the policies table lacks what it had: it was replaced, emptied or lost records; "
            "writing them back",
            policies=len(known),
            such_as=sorted(shown(record.key) for record in known[:NAMED_MAX]),
        )

    def _in_order(self) -> list[str]:
        """The lacking keys; every daemon begins at another position."""
        keys = [*self._ledger.lacking]
        start = self._crc % len(keys) if keys else 0
        return [*keys[start:], *keys[:start]]

    def _misplaced(self) -> list[str]:
        """The misplaced keys whose turn it is."""
        misplaced = self._ledger.misplaced
        self._looks = {key: self._looks.get(key, 0) + 1 for key in misplaced}
        due = [key for key in misplaced if self._looks[key] > self._patience(key)]
        self._are_many = len(due) > LOGGED_MAX
        if self._are_many:
            _log.warning("many policies are hidden by other records", policies=len(due))
        return due[:MISPLACED_MAX]

    def _patience(self, key: str) -> int:
        """The number of checks for which a misplaced key is left to its writers."""
        known = self._ledger.get(key)
        writers = {self._ledger.misplaced[key].writer, known.writer if known else ""}
        return 1 if self._writer in writers else 2 + self._crc % _BYSTANDERS_LOOKS

    async def _write(self, keys: Iterator[str]) -> None:
        """Write the records of these keys until there are none, or the table accepts no more."""
        for key in keys:
            known, is_misplaced = self._ledger.get(key), key in self._ledger.misplaced
            if known is None or not (is_misplaced or key in self._ledger.lacking):
                continue  # another daemon was faster
            try:
                await self._put(key, encode_policy(self._next(known, is_misplaced=is_misplaced)))
            except WireError as error:
                self._refusals.add(key, str(error))
                self._ledger.leave(key)
                continue
            except ExchangeClosed:
                return
            except ExchangeDown as error:
                if lacks := len(self._ledger.lacking):
                    self.trouble = f"{lacks} policies are not in the table yet: {error}"
                return
            if not is_misplaced:
                self.written_back += known.revision > 0
            elif not self._are_many:
                _log.info(
                    "wrote a policy again that another record would have hidden", key=shown(key)
                )
            # A table in memory answers at once, so yield to requests here.
            await asyncio.sleep(0)

    def _next(self, known: PolicyRecord, *, is_misplaced: bool) -> PolicyRecord:
        """What is to be the last record of a key."""
        if is_misplaced:
            return self._ledger.next(known.key, known.value, self._writer)
        return known if known.revision else replace(known, revision=1, writer=self._writer)
