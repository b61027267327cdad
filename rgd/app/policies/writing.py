"""Writes one policy's record to the table and waits until it is read back (a compare-and-set).

Laws: a record counts as written when it is read back and counts; who waits hears soon of a faster one.
Nothing is kept to be written later: a record that still waits for its turn when its caller is told
that it failed is not written any more. One that was sent may still come into force, and that is said.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from rgd.core.policies.records import PolicyRecord
from rgd.ports.exchange import ExchangeDown, PolicyStore
from rgd.wire.policies import encode_policy

#: The longest a record that was written may take until it is read back.
READ_BACK_S: Final = 4.0
#: Records on their way to the table at once; further ones wait. Below what the Pulsar client takes.
PUTS_MAX: Final = 64


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


class Writing:
    """Records on their way to the table, and those who wait for them."""

    def __init__(self, store: PolicyStore) -> None:
        self._store = store
        #: By key, one at a time.
        self._unread: dict[str, _Written] = {}
        self._putting: set[asyncio.Task[None]] = set()
        self._puts = asyncio.Semaphore(PUTS_MAX)
        #: What was learnt of those who wait, until they are told.
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
            putting.cancel()
            del self._unread[record.key]
        if counts is None:
            raise ExchangeDown(
                f"the table was lost, or the daemon stops; {record.key} may still come into force"
            )
        return counts

    def note(self, record: PolicyRecord, value: bytes, *, counts: bool) -> None:
        """Learn from a record that was read whether one that was written here counts."""
        if (written := self._unread.get(record.key)) is not None:
            outcome = written.outcome(record, value, counts=counts)
            if outcome is not None:
                self._answers.append((written, outcome))

    def answer(self) -> None:
        """Tell those who wait what was learnt: what was read is in force now."""
        answers, self._answers = self._answers, []
        for written, counts in answers:
            if not written.answer.done():
                written.answer.set_result(counts)

    def give_up(self) -> None:
        """Tell those who wait that nobody reads any more."""
        for written in self._unread.values():
            if not written.answer.done():
                written.answer.set_result(None)

    def _on_put(self, putting: asyncio.Task[None]) -> None:
        self._putting.discard(putting)
        if not putting.cancelled():
            putting.exception()  # it was told to whoever waited, if anybody still did
