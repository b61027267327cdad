"""Writes one policy's record to the table and waits until it is read back (a compare-and-set).

Laws: a record counts as written when it is read back and counts.
Failed writes are not queued: a record that still waits for its turn when its caller gets an
error is not written any more. A record that was sent may still come into force, and the error says so.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from rgd.core.policies.records import PolicyRecord
from rgd.ports.exchange import ExchangeDown, PolicyStore
from rgd.wire.policies import encode_policy

#: Most records in flight to the table; further ones wait. This is below the Pulsar client's limit.
PUTS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class _Written:
    """A record that was written here, and its waiting caller."""

    revision: int
    value: bytes
    #: Whether it counts; None if reading has stopped.
    answer: asyncio.Future[bool | None]

    def outcome(self, record: PolicyRecord, value: bytes, *, counts: bool) -> bool | None:
        """The outcome that the next record of its key implies; None if it implies none."""
        if value == self.value:
            return counts
        # Another daemon was faster, so do not wait for our record.
        return False if counts and record.revision >= self.revision else None


class Writing:
    """Records in flight to the table, and their waiting callers."""

    def __init__(self, store: PolicyStore, *, read_back_s: float) -> None:
        self._store = store
        self._read_back_s = read_back_s
        #: By key, one at a time.
        self._unread: dict[str, _Written] = {}
        self._puts = asyncio.Semaphore(PUTS_MAX)
        #: Outcomes of waiting callers that are not delivered yet.
        self._answers: list[tuple[_Written, bool]] = []

    async def put(self, key: str, value: bytes) -> None:
        """Write a record when it is its turn.

        Raises:
            ExchangeDown, ExchangeClosed: as `PolicyStore.put`.
        """
        async with self._puts:
            await self._store.put(key, value)

    async def write(self, record: PolicyRecord) -> bool:
        """Write a record and wait until it is read back; whether it counts.

        Raises:
            ExchangeDown: it was not read back; the message says that it may still come into force.
            WireError: it cannot be written at all.
        """
        value = encode_policy(record)
        answer: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        self._unread[record.key] = _Written(record.revision, value, answer)
        putting = asyncio.get_running_loop().create_task(self.put(record.key, value))
        putting.add_done_callback(_note_put)
        try:
            async with asyncio.timeout(self._read_back_s):
                # A record that was read back counts as acknowledged.
                waiting: set[asyncio.Future[Any]] = {putting, answer}
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    putting.result()
                counts = await answer
        except TimeoutError as error:
            raise ExchangeDown(
                f"{record.key} was written and not read back within {self._read_back_s:g} s; "
                "it may still come into force"
            ) from error
        except ExchangeDown as error:
            raise ExchangeDown(f"{error}; {record.key} may still come into force") from error
        finally:
            putting.cancel()
            del self._unread[record.key]
        if counts is None:
            raise ExchangeDown(
                f"the table was lost, or the daemon stops; {record.key} may still come into force"
            )
        return counts

    def note(self, record: PolicyRecord, value: bytes, *, counts: bool) -> None:
        """Learn from a read record whether one of our own counts."""
        if (written := self._unread.get(record.key)) is not None:
            outcome = written.outcome(record, value, counts=counts)
            if outcome is not None:
                self._answers.append((written, outcome))

    def answer(self) -> None:
        """Deliver outcomes to waiting callers: the read records are in force now."""
        answers, self._answers = self._answers, []
        for written, counts in answers:
            if not written.answer.done():
                written.answer.set_result(counts)

    def give_up(self) -> None:
        """Tell waiting callers that reading has stopped."""
        for written in self._unread.values():
            if not written.answer.done():
                written.answer.set_result(None)


def _note_put(putting: asyncio.Task[None]) -> None:
    if not putting.cancelled():
        putting.exception()  # whoever waited got it, if anybody still did
