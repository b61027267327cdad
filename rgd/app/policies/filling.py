"""Writes missing records to a policies table: a groups file's seeds, and records that it had before.

Law: known records are written back unchanged, with revision and writer, deletions too. So
any number of daemons may do this at once, a newer record is never replaced, and daemons with
different knowledge agree in the end.
How: each daemon begins at another position and skips records that another daemon wrote first.
`ledger` knows the missing records; `table` reaches the table.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from itertools import chain
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
SEEDS_MAX: Final = 48
#: Most policies that one log line names.
NAMED_MAX: Final = 5

_log = structlog.get_logger("rgd.policies")

#: Writes a record to the table.
Put = Callable[[str, bytes], Awaitable[None]]


class Filling:
    """The missing records of a table, and their writes."""

    def __init__(
        self, ledger: Ledger, writer: str, put: Put, refusals: Refusals, pauses: Pauses
    ) -> None:
        self._pauses = pauses
        self._ledger = ledger
        self._writer = writer
        self._put = put
        self._refusals = refusals
        #: Set when records arrived, maybe the written ones.
        self._is_read = asyncio.Event()
        #: Written records that the table, or its predecessor, once had.
        self.written_back = 0
        #: Why records are missing in the table; None if none are.
        self.trouble: str | None = None

    def note_read(self) -> None:
        """Note that records were applied."""
        self._is_read.set()

    async def run(self) -> None:
        """Write the missing records until there are none."""
        lacking = [record for key in self._ledger.lacking if (record := self._ledger.get(key))]
        seeds = sum(not record.revision for record in lacking)
        self._tell_lacking([record for record in lacking if record.revision])
        while self._ledger.lacking:
            order = self._in_order()
            async with asyncio.TaskGroup() as tasks:
                for _ in range(SEEDS_MAX):
                    tasks.create_task(self._put_some(order))
            is_written = next(order, None) is None
            if not is_written or not await self._is_all_read():
                await asyncio.sleep(self._pauses.refill_s)
        self.trouble = None
        if seeds:
            _log.info("seeded the policies table from the groups file", policies=seeds)

    def _tell_lacking(self, known: list[PolicyRecord]) -> None:
        if not known:
            return
        _log.warning(
            "the policies table lacks what it had: it was replaced, emptied or lost records; "
            "writing them back",
            policies=len(known),
            such_as=sorted(shown(record.key) for record in known[:NAMED_MAX]),
        )

    def _in_order(self) -> "chain[str]":
        """The missing records; every daemon begins at another position."""
        keys = [*self._ledger.lacking]
        start = zlib.crc32(self._writer.encode()) % len(keys) if keys else 0
        return chain(keys[start:], keys[:start])

    async def _put_some(self, keys: Iterable[str]) -> None:
        """Write missing records until there are none, or the table accepts no more."""
        for key in keys:
            record = self._ledger.get(key)
            if key not in self._ledger.lacking or record is None:
                continue  # another daemon was faster
            try:
                await self._put(key, self._encoded(record))
            except WireError as error:
                self._refusals.add(key, str(error))
                self._ledger.leave(key)
            except ExchangeClosed:
                return
            except ExchangeDown as error:
                lacks = len(self._ledger.lacking)
                self.trouble = f"{lacks} policies are not in the table yet: {error}"
                return
            self.written_back += record.revision > 0
            # A table in memory answers at once, so yield to requests here.
            await asyncio.sleep(0)

    def _encoded(self, record: PolicyRecord) -> bytes:
        if not record.revision:
            return encode_policy(replace(record, revision=1, writer=self._writer))
        return encode_policy(record)

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
