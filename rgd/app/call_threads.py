"""Blocking calls in a thread of their own, one at a time, for which nobody waits longer than a limit.

Law: a call that hangs keeps its thread, and nothing else: whoever waits gets an error after `timeout_s`,
others at once when `waiting_max` calls are queued, and the process ends without it. So what may hang (a mounted
file system, a store behind a network) has a thread apart from what may not.
Everything but the call itself is the event loop's.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from rgd.errors import Unavailable

_Result = TypeVar("_Result")


class CallThreadBusy(Unavailable):
    """Too many calls wait for their turn already, or one did not end in time; it may still be going on."""

    transient = True


class CallThreadClosed(Unavailable):
    """The daemon stops."""


#: What is to be done, and who waits for it: nobody any more where it is done.
_Call = tuple[Callable[[], Any], asyncio.Future[Any]]


class CallThread:
    """One thread and its queue."""

    def __init__(self, what: str, *, timeout_s: float, waiting_max: int) -> None:
        """No thread runs before the first call.

        Args:
            what: what is called, for messages: "reads of the tier".
            timeout_s: how long a caller waits, its time in the queue included.
            waiting_max: calls that are queued or going on; more are refused.
        """
        self._what = what
        self._timeout_s = timeout_s
        self._waiting_max = waiting_max
        self._queue: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        #: Queued or going on, also where nobody waits any more.
        self._calls: set[asyncio.Future[Any]] = set()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    async def call(self, work: Callable[[], _Result]) -> _Result:
        """Do `work` in the thread.

        Raises:
            CallThreadBusy, CallThreadClosed: it was not done, or it is not known whether it will be.
            Exception: what `work` raises.
        """
        if self._is_closed:
            raise CallThreadClosed(f"{self._what}: the daemon stops")
        if len(self._calls) >= self._waiting_max:
            raise CallThreadBusy(f"{self._what}: {self._waiting_max} wait already; come back")
        answer: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._calls.add(answer)
        self._start()
        self._queue.put((work, answer))
        try:
            async with asyncio.timeout(self._timeout_s):
                return await answer
        except TimeoutError as error:
            raise CallThreadBusy(
                f"{self._what}: expected an answer within {self._timeout_s:g} s, got none; come back"
            ) from error

    def close(self) -> None:
        """Begin nothing more; who waits gets an error. What hangs is left behind. Idempotent."""
        self._is_closed = True
        self._queue.put(None)
        for answer in self._calls:
            if not answer.done():
                answer.set_exception(CallThreadClosed(f"{self._what}: the daemon stops"))

    def _start(self) -> None:
        if self._thread is None:
            # A daemon thread: what hangs must not keep the process from ending.
            self._thread = threading.Thread(target=self._run, name="rgd-calls", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (call := self._queue.get()) is not None:
            work, answer = call
            result, error = None, None
            if not answer.done():
                try:
                    result = work()
                except BaseException as raised:  # noqa: BLE001 -- the caller gets it
                    error = raised
            # A loop that is closed has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                answer.get_loop().call_soon_threadsafe(self._settle, answer, result, error)

    def _settle(
        self, answer: asyncio.Future[Any], result: object, error: BaseException | None
    ) -> None:
        self._calls.discard(answer)
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)
