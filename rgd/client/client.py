"""The client for asyncio.

    async with Client(ClientSettings(when_away="open")) as client:
        orders = client.limiter(Name("acme", "orders"), leased=True)
        if (await orders.acquire()).granted:
            ...

What it knows is `core`; this is the way to it from coroutines of one event loop.
"""

import asyncio
import random
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Self

from rgd.client import forks
from rgd.client.answers import (
    Answer,
    Name,
    Question,
    Source,
    check_amounts,
    check_question,
    check_questions,
)
from rgd.client.clock import now
from rgd.client.core import ClientCore, Counts
from rgd.client.errors import ClientClosed
from rgd.client.hold import Hold
from rgd.client.leases import grants
from rgd.client.pump import Pump
from rgd.client.settings import ClientSettings
from rgd.client.tickets import Ticket
from rgd.client.transport import Transport
from rgd.client.waiting import Attempts, decided, unused_of


class Client:
    """Asks one daemon, from coroutines of one event loop; an async context manager."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._core = ClientCore(settings, random.Random())  # noqa: S311 -- jitter, not a secret
        self._transport: Transport | None = None
        self._pump: Pump | None = None
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        assert self._pump is None, "a client is opened once"
        self._transport = await Transport(self._settings).__aenter__()
        self._pump = Pump(self._core, self._transport, nullcontext())
        self._running = asyncio.get_running_loop().create_task(self._pump.run(), name="rgd client")
        self._running.add_done_callback(self._ended)
        forks.watch(self)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give back leases and what was not used; later calls raise `ClientClosed`."""
        pump, running, transport = self._pump, self._running, self._transport
        self._pump = self._running = None
        if running is None or transport is None:
            return
        try:
            if pump is not None:
                pump.close()
            await running
        finally:
            await transport.__aexit__()

    def _ended(self, _: "asyncio.Task[None]") -> None:
        """Whatever ended it, nobody would be answered any more; `close` raises what it was."""
        self._pump = None

    def disown(self) -> None:
        """See `forks`."""
        self._pump = self._running = None
        self._core.leases.disown(now())

    def limiter(self, name: Name, *, leased: bool = False) -> "Limiter":
        """Ask for one name.

        Args:
            name: whose traffic it is.
            leased: take tokens ahead and answer from them, which takes less than a microsecond. The
                tokens are reserved for this client meanwhile; it suits names that are asked for often.
        """
        hold = self._core.leases.hold_of(name, now()) if leased else None
        return Limiter(self, name, hold)

    async def ask(self, question: Question, *, wait_s: float = 0.0) -> Answer:
        """Ask once, or until it is granted within `wait_s` seconds.

        Raises:
            QuestionRefused: the question or the token is at fault.
            ClientClosed: the client is not open.
        """
        return await self._ask(question, None, wait_s)

    async def ask_all(self, questions: Sequence[Question]) -> list[Answer]:
        """Ask several at once; an item at fault has `status` and `reason` in its answer."""
        check_questions(questions)
        return list(await asyncio.gather(*(self._ask_once(one, None, None) for one in questions)))

    def settle(self, name: Name, messages: int = 0, bytes: int = 0) -> None:  # noqa: A002 -- as on the wire
        """Give back, with the next call, what was granted and not used."""
        check_amounts(messages, bytes)
        self._opened().wake()
        self._core.settle(name, messages, bytes)

    def count(self) -> Counts:
        """What this client did so far."""
        return self._core.count()

    async def _ask(self, question: Question, hold: Hold | None, wait_s: float) -> Answer:
        attempts = Attempts(question, wait_s, now())
        while True:
            answer = decided(
                await self._ask_once(attempts.question, hold, attempts.within_ns(now()))
            )
            pause_s = attempts.pause_s(answer, now())
            if pause_s is None:
                return answer
            await asyncio.sleep(pause_s)

    async def _ask_once(
        self, question: Question, hold: Hold | None, within_ns: int | None
    ) -> Answer:
        check_question(question)
        pump = self._opened()
        told: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def on_answer(answer: Answer) -> None:
            if not told.done():
                told.set_result(answer)

        asked = self._core.ask(question, now(), on_answer, within_ns, hold)
        pump.wake()
        if not isinstance(asked, Ticket):
            return asked
        try:
            return await told
        except asyncio.CancelledError:
            self._core.abandon(asked)
            if not told.cancelled():
                # It was answered in the same turn of the loop, and nobody hears of it.
                with suppress(ClientClosed):
                    self.take_back(question.name, hold, told.result(), None, None)
            raise

    def take_back(
        self, name: Name, hold: Hold | None, answer: Answer, messages: int | None, size: int | None
    ) -> None:
        """Give back what of an answer was not used; None: all."""
        unused = unused_of(answer, messages, size)
        if answer.source is Source.LEASE and hold is not None:
            hold.put_back(*unused, now())
        elif answer.source is Source.DAEMON and any(unused):
            self.settle(name, *unused)

    def _opened(self) -> Pump:
        if self._pump is None:
            raise ClientClosed("the client is not open: use `async with`, in the process that asks")
        return self._pump


class Limiter:
    """One name, asked for by coroutines."""

    __slots__ = ("_client", "_hold", "name")

    def __init__(self, client: Client, name: Name, hold: Hold | None) -> None:
        self._client = client
        self._hold = hold
        self.name = name

    async def acquire(
        self,
        messages: int = 1,
        bytes: int = 0,  # noqa: A002 -- as on the wire
        *,
        attempt: int = 1,
        partial: bool | None = None,
        wait_s: float = 0.0,
    ) -> Answer:
        """May so much pass?

        Args:
            messages: how many.
            bytes: of what size.
            attempt: 1 for new work; more for work that was refused before.
            partial: whether a part is welcome; None: for dispatch.
            wait_s: how long to wait for a grant; 0: one answer, whatever it is.

        Raises:
            QuestionRefused: the question or the token is at fault.
            ClientClosed: the client is not open.
        """
        hold = self._hold
        if hold is not None and attempt == 1 and hold.take(messages, bytes, now()):
            return grants[messages, bytes, hold.is_over]
        question = Question(self.name, messages, bytes, partial, attempt)
        return await self._client._ask(question, hold, wait_s)  # noqa: SLF001 -- a part of it

    def try_acquire(self, messages: int = 1, bytes: int = 0) -> bool:  # noqa: A002 -- as on the wire
        """Whether so much may pass, by the tokens at hand, without asking anybody.

        False says only that the lease does not cover it: `acquire` then asks. Only for leased names.
        """
        return self._hold is not None and self._hold.take(messages, bytes, now())

    def settle(
        self,
        answer: Answer,
        messages: int | None = None,
        bytes: int | None = None,  # noqa: A002 -- as on the wire
    ) -> None:
        """Give back what was granted and not used.

        Args:
            answer: the grant.
            messages: how many of them were not used; None: all.
            bytes: the same of its bytes.
        """
        self._client.take_back(self.name, self._hold, answer, messages, bytes)
