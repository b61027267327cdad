"""The client for threads: the same core, its calls made by a thread of its own.

    with BlockingClient(ClientSettings(when_away="open")) as client:
        orders = client.limiter(Name("acme", "orders"), leased=True)
        if orders.acquire().granted:
            ...

Any number of threads may ask. A lock guards the core; nobody waits for an answer while holding it.
A caller's wait ends by his own clock, so that it does not depend on the thread that makes the calls.
"""

import asyncio
import random
import threading
from collections.abc import Sequence
from typing import Final, Self

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

#: Longest that opening waits for the thread to begin.
_OPEN_S: Final = 10.0


class _Reply:
    """Where a caller waits."""

    __slots__ = ("_answered", "answer")

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self._answered = threading.Lock()
        self._answered.acquire()

    def on_answer(self, answer: Answer) -> None:
        self.answer = answer
        self._answered.release()

    def wait(self, timeout_s: float) -> Answer | None:
        """The answer; None: there was none in time."""
        self._answered.acquire(timeout=max(0.0, timeout_s))
        return self.answer


class BlockingClient:
    """Asks one daemon, from any thread; a context manager."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._core = ClientCore(settings, random.Random())  # noqa: S311 -- jitter, not a secret
        self.lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pump: Pump | None = None
        self._closed = threading.Event()
        #: Whether the thread is to wake already, which costs a system call each time.
        self._is_woken = False

    def __enter__(self) -> Self:
        return self.open()

    def open(self) -> Self:
        """Open it, where `with` does not fit; `close` ends it.

        Raises:
            BadSetting: a file of the settings cannot be used.
        """
        assert self._thread is None, "a client is opened once"
        # Files that cannot be used are an error of who opens, not of the thread.
        transport = Transport(self._settings)
        begun = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(transport, begun)), name="rgd client", daemon=True
        )
        self._thread.start()
        begun.wait(_OPEN_S)
        forks.watch(self)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back leases and what was not used; later calls raise `ClientClosed`."""
        with self.lock:
            pump, loop = self._pump, self._loop
            self._pump = None
        self._closed.set()
        if pump is None or loop is None or self._thread is None:
            return
        loop.call_soon_threadsafe(pump.close)
        self._thread.join(self._settings.close_timeout_s + self._settings.timeout_s)

    def disown(self) -> None:
        """See `forks`. Another thread may have held the lock."""
        self.lock = threading.Lock()
        self._pump = None
        self._core.leases.disown(now())

    def limiter(self, name: Name, *, leased: bool = False) -> "BlockingLimiter":
        """Ask for one name; see `Client.limiter`."""
        with self.lock:
            hold = self._core.leases.hold_of(name, now()) if leased else None
        return BlockingLimiter(self, name, hold)

    def ask(self, question: Question, *, wait_s: float = 0.0) -> Answer:
        """Ask once, or until it is granted within `wait_s` seconds.

        Raises:
            QuestionRefused: the question or the token is at fault.
            ClientClosed: the client is not open.
        """
        return self._ask(question, None, wait_s)

    def ask_all(self, questions: Sequence[Question]) -> list[Answer]:
        """Ask several at once; an item at fault has `status` and `reason` in its answer."""
        check_questions(questions)
        asked = [self._begin(question, None, None) for question in questions]
        return [self._end(reply, ticket) for reply, ticket in asked]

    def settle(self, name: Name, messages: int = 0, bytes: int = 0) -> None:  # noqa: A002 -- as on the wire
        """Give back, with the next call, what was granted and not used."""
        check_amounts(messages, bytes)
        with self.lock:
            self._check_open()
            self._core.settle(name, messages, bytes)
            self._wake()

    def count(self) -> Counts:
        """What this client did so far."""
        with self.lock:
            return self._core.count()

    async def _run(self, transport: Transport, begun: threading.Event) -> None:
        async with transport:
            pump = Pump(self._core, transport, self.lock)
            with self.lock:
                self._loop, self._pump = asyncio.get_running_loop(), pump
            begun.set()
            try:
                await pump.run()
            finally:
                with self.lock:
                    self._pump = None

    def _ask(self, question: Question, hold: Hold | None, wait_s: float) -> Answer:
        attempts = Attempts(question, wait_s, now())
        while True:
            asked = self._begin(attempts.question, hold, attempts.within_ns(now()))
            answer = decided(self._end(*asked))
            pause_s = attempts.pause_s(answer, now())
            if pause_s is None:
                return answer
            self._closed.wait(pause_s)

    def _begin(
        self, question: Question, hold: Hold | None, within_ns: int | None
    ) -> tuple[_Reply, Ticket | Answer]:
        check_question(question)
        reply = _Reply()
        with self.lock:
            self._check_open()
            asked = self._core.ask(question, now(), reply.on_answer, within_ns, hold)
            self._wake()
        return reply, asked

    def _end(self, reply: _Reply, asked: Ticket | Answer) -> Answer:
        if not isinstance(asked, Ticket):
            return asked
        answer = reply.wait((asked.deadline - now()) / 1e9)
        if answer is None:
            with self.lock:
                answer = reply.answer or self._core.give_up(asked, now())
        return answer

    def _check_open(self) -> None:
        if self._pump is None:
            raise ClientClosed("the client is not open: use `with`, in the process that asks")

    def _wake(self) -> None:
        if self._is_woken or self._loop is None:
            return
        self._is_woken = True
        self._loop.call_soon_threadsafe(self._wake_pump)

    def _wake_pump(self) -> None:
        with self.lock:
            self._is_woken = False
            pump = self._pump
        if pump is not None:
            pump.wake()


class BlockingLimiter:
    """One name, asked for by threads."""

    __slots__ = ("_client", "_hold", "name")

    def __init__(self, client: BlockingClient, name: Name, hold: Hold | None) -> None:
        self._client = client
        self._hold = hold
        self.name = name

    def acquire(
        self,
        messages: int = 1,
        bytes: int = 0,  # noqa: A002 -- as on the wire
        *,
        attempt: int = 1,
        partial: bool | None = None,
        wait_s: float = 0.0,
    ) -> Answer:
        """May so much pass? See `Limiter.acquire`."""
        hold = self._hold
        if hold is not None and attempt == 1:
            with self._client.lock:
                is_granted = hold.take(messages, bytes, now())
            if is_granted:
                return grants[messages, bytes, hold.is_over]
        question = Question(self.name, messages, bytes, partial, attempt)
        return self._client._ask(question, hold, wait_s)  # noqa: SLF001 -- a part of it

    def try_acquire(self, messages: int = 1, bytes: int = 0) -> bool:  # noqa: A002 -- as on the wire
        """Whether so much may pass, by the tokens at hand; see `Limiter.try_acquire`."""
        if self._hold is None:
            return False
        with self._client.lock:
            return self._hold.take(messages, bytes, now())

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
        unused = unused_of(answer, messages, bytes)
        if answer.source is Source.LEASE and self._hold is not None:
            with self._client.lock:
                self._hold.put_back(*unused, now())
        elif answer.source is Source.DAEMON:
            self._client.settle(self.name, *unused)
