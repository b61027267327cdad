"""Carries round records to the usage log: a bounded queue, encoded in order.

Law: the event loop never waits for a large record to be encoded, and a queue that is full loses its
oldest record and counts it, as is one that cannot be encoded; logging never holds limiting up.
Where entries go from here is the `UsageLog`'s business.
"""

import asyncio
from collections import deque
from typing import Final

from rgd.app.containment import InternalErrors
from rgd.core.exchange.messages import RoundRecord
from rgd.ports.usagelog import UsageLog
from rgd.wire.record import encode_record

#: Rounds that wait to be logged; then the oldest is lost, and counted (`lost`).
RECORDS_MAX: Final = 64

#: A record of more rows is encoded in a thread: inline it would keep requests waiting for more than a
#: millisecond.
INLINE_ROWS_MAX: Final = 1_000


class Recorder:
    """Round records on their way to the usage log, in order."""

    def __init__(self, usage_log: UsageLog, errors: InternalErrors) -> None:
        self._usage_log = usage_log
        self._errors = errors
        self._records: deque[tuple[RoundRecord, int]] = deque()
        self._has_records = asyncio.Event()
        #: Records that were lost because the queue was full, or because they could not be appended.
        self.lost = 0

    def add(self, record: RoundRecord, unix_ms: int) -> None:
        """Queue a record, stamped with the broker's time."""
        if len(self._records) == RECORDS_MAX:
            self._records.popleft()
            self.lost += 1
        self._records.append((record, unix_ms))
        self._has_records.set()

    async def run(self) -> None:
        """Append what is queued until cancelled."""
        while True:
            await self._has_records.wait()
            self._has_records.clear()
            while self._records:
                # It stays queued until it is appended: `finish` appends what a cancelled run leaves.
                queued = self._records[0]
                await self._take(*queued)
                if self._records and self._records[0] is queued:
                    self._records.popleft()

    def finish(self) -> None:
        """Append what is still queued; `run` has ended."""
        while self._records:
            record, unix_ms = self._records.popleft()
            try:
                self._append(encode_record(record), unix_ms)
            except Exception as error:  # noqa: BLE001 -- the next record has nothing to do with it
                self._lose(error)

    async def _take(self, record: RoundRecord, unix_ms: int) -> None:
        """Append one record; one that cannot be is lost, and counted."""
        try:
            if len(record.rows) > INLINE_ROWS_MAX:
                payload = await asyncio.to_thread(encode_record, record)
            else:
                payload = encode_record(record)
            self._append(payload, unix_ms)
        except Exception as error:  # noqa: BLE001 -- the next record has nothing to do with it
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        self.lost += 1
        self._errors.note("record", error)

    def _append(self, payload: bytes, unix_ms: int) -> None:
        self._usage_log.append(payload, broker_timestamp_ms=unix_ms)
