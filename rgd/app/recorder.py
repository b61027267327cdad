"""Passes round records to the usage log: a bounded queue, divided and encoded in order.

Law: the event loop never waits for the encoding of a large record. A round that is too large for one
entry becomes several. A full queue loses its oldest record, an unwritable record is
lost, and both are counted (`rgd_log_lost_total`). Logging never delays limiting.
The `UsageLog` writes the entries.
"""

import asyncio
from collections import deque
from dataclasses import replace
from typing import Final

from rgd.app.containment import InternalErrors
from rgd.core.exchange.messages import RoundRecord
from rgd.ports.usagelog import UsageLog
from rgd.wire.record import encode_record
from rgd.wire.record_parts import parts_of

#: Most waiting rounds; beyond that the oldest is lost, and counted (`lost`).
RECORDS_MAX: Final = 64

#: Most rows and peers of all waiting rounds, about 250 bytes of memory each; the same.
WAITING_ROWS_MAX: Final = 500_000

#: A record with more rows and peers is divided and encoded in a thread, because inline it would delay
#: requests by more than a millisecond.
INLINE_ROWS_MAX: Final = 1_000

#: A record, and the broker's time in milliseconds since 1970.
_Stamped = tuple[RoundRecord, int]


class Recorder:
    """A queue of round records for the usage log, in order."""

    def __init__(self, usage_log: UsageLog, errors: InternalErrors) -> None:
        self._usage_log = usage_log
        self._errors = errors
        self._waiting: deque[_Stamped] = deque()
        self._waiting_rows = 0
        #: The remaining entries of the record that is being written.
        self._parts: deque[_Stamped] = deque()
        self._has_records = asyncio.Event()
        #: Records that were lost before they reached the log, or parts of one.
        self.lost = 0

    @property
    def lost_total(self) -> int:
        """Rounds and entries that were lost here or in the log (`rgd_log_lost_total`)."""
        return self.lost + self._usage_log.lost

    def add(self, record: RoundRecord, unix_ms: int) -> None:
        """Queue a record, stamped with the broker's time."""
        rows = _size_of(record)
        while self._waiting and (
            len(self._waiting) >= RECORDS_MAX or self._waiting_rows + rows > WAITING_ROWS_MAX
        ):
            self._next()
            self.lost += 1
        self._waiting.append((record, unix_ms))
        self._waiting_rows += rows
        self._has_records.set()

    async def run(self) -> None:
        """Append queued records until cancelled."""
        while True:
            await self._has_records.wait()
            self._has_records.clear()
            while self._waiting:
                # A taken record stays in `_left` until it is appended, so that `finish` can append the rest
                # of a cancelled run.
                record, unix_ms = self._waiting[0]
                if _size_of(record) > INLINE_ROWS_MAX:
                    await self._write_large(record, unix_ms)
                else:
                    self._next()
                    self._write(record, unix_ms)

    def finish(self) -> None:
        """Append the remaining records after `run` has ended."""
        while self._parts:
            self._write(*self._parts.popleft())
        while self._waiting:
            record, unix_ms = self._next()
            try:
                for part in parts_of(record):
                    self._write(part, unix_ms)
            except Exception as error:  # noqa: BLE001 -- the next record has nothing to do with it
                self._lose(error)

    async def _write_large(self, record: RoundRecord, unix_ms: int) -> None:
        """Divide and encode in a thread, a part at a time."""
        try:
            parts = await asyncio.to_thread(lambda: deque(parts_of(record)))
        except Exception as error:  # noqa: BLE001 -- the next record has nothing to do with it
            parts = deque()
            self._lose(error)
        if not self._waiting or self._waiting[0][0] is not record:
            # The queue became full meanwhile and dropped this record as the oldest; it is counted as lost.
            return
        self._next()
        self._parts.extend((part, unix_ms) for part in parts)
        while self._parts:
            part, _ = self._parts[0]
            try:
                payload = await asyncio.to_thread(_encoded, part, self.lost_total)
                self._usage_log.append(payload, broker_timestamp_ms=unix_ms)
            except Exception as error:  # noqa: BLE001 -- the next part has nothing to do with it
                self._lose(error)
            self._parts.popleft()

    def _write(self, record: RoundRecord, unix_ms: int) -> None:
        try:
            payload = _encoded(record, self.lost_total)
            self._usage_log.append(payload, broker_timestamp_ms=unix_ms)
        except Exception as error:  # noqa: BLE001 -- the next record has nothing to do with it
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        self.lost += 1
        self._errors.note("record", error)

    def _next(self) -> _Stamped:
        """Take the oldest from the queue."""
        record, unix_ms = self._waiting.popleft()
        self._waiting_rows -= _size_of(record)
        return record, unix_ms


def _size_of(record: RoundRecord) -> int:
    return len(record.rows) + len(record.peers)


def _encoded(record: RoundRecord, lost: int) -> bytes:
    return encode_record(replace(record, lost=lost))
