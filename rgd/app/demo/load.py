"""Asks one daemon as a broker would: many topics, retries with backoff.

Law: it believes nobody. What was wanted and what was admitted is counted here.
What one tick asks for arose since the tick before, so its counts are spread
over that time: on a busy machine a late tick moves nothing into another round.
Ticks for which the machine had no time are noted, because tokens nobody could ask for ran over.
"""

import asyncio
import heapq
import random
import time
from collections.abc import Iterator
from itertools import count, cycle
from typing import Final

from rgd.adapters.http.client import DaemonClient, DaemonRefused, DaemonUnreachable
from rgd.app.demo.plan import NAMESPACE
from rgd.app.demo.verdict import Tally

#: Work is sent this often, as a broker sends what its producers brought meanwhile.
TICK_S: Final = 0.02
#: A tick that begins so much after it was due is reported.
LATE_S: Final = 0.1

#: What one array may have (`http.batch_max`); after a standstill the rest is given up.
ASKED_MAX: Final = 1000
TOPICS: Final = 50
#: What each message is asked for with, beside its topic and attempt.
_ASKED: Final = {"tenant": NAMESPACE[0], "namespace": NAMESPACE[1], "bytes": 512}
#: A refused message is given up after so many tries.
ATTEMPTS_MAX: Final = 4
#: Refused messages that wait for their next try; more are given up.
WAITING_MAX: Final = 5_000


class Load:
    """New work at a rate, and retries of what was refused."""

    def __init__(self, seed: int) -> None:
        self.tally = Tally()
        self.wanted_per_s = 0.0
        self._dice = random.Random(seed)  # noqa: S311 - jitter, not a secret
        self._topics: Iterator[str] = cycle(f"topic-{place}" for place in range(TOPICS))
        self._order = count()
        #: (due, order, topic, attempt) of what was refused.
        self._waiting: list[tuple[float, int, str, int]] = []
        self._owed = 0.0
        self._asking: asyncio.Task[None] | None = None

    def start(self, base: str) -> None:
        """Start asking the daemon at `base`, for nothing yet."""
        self.wanted_per_s = self._owed = 0.0
        self._waiting.clear()
        self._asking = asyncio.get_running_loop().create_task(self._ask_on(base))

    async def stop(self) -> None:
        """End it."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _ask_on(self, base: str) -> None:
        async with DaemonClient(base) as client:
            last_s = time.monotonic()
            while True:
                asleep_s = time.monotonic()
                # Without the wait for the last answers: a daemon that is slow is not excused.
                due_s = max(asleep_s, last_s + TICK_S)
                await asyncio.sleep(due_s - asleep_s)
                now_s = time.monotonic()
                if now_s - due_s > LATE_S:
                    self.tally.late.append((_ms(due_s), _ms(now_s)))
                await self._tick(client, now_s, now_s - last_s)
                last_s = now_s

    async def _tick(self, client: DaemonClient, now_s: float, elapsed_s: float) -> None:
        """Send what is new and what is due again, and count what became of it."""
        self._owed += self.wanted_per_s * elapsed_s
        fresh, self._owed = int(self._owed), self._owed % 1
        asks = [(next(self._topics), 1) for _ in range(fresh)]
        if self.wanted_per_s == 0:
            self._waiting.clear()
        while self._waiting and self._waiting[0][0] <= now_s:
            _, _, topic, attempt = heapq.heappop(self._waiting)
            asks.append((topic, attempt))
        admitted = await self._ask(client, asks[:ASKED_MAX]) if asks else 0
        self.tally.add(_ms(now_s - elapsed_s), _ms(now_s), fresh, admitted)

    async def _ask(self, client: DaemonClient, asks: list[tuple[str, int]]) -> int:
        """Ask for messages; how many were admitted."""
        requests = [_ASKED | {"topic": topic, "attempt": attempt} for topic, attempt in asks]
        try:
            if len(requests) == 1:
                answers = [await client.acquire(requests[0])]
            else:
                answers = await client.acquire_all(requests)
        except (DaemonUnreachable, DaemonRefused):
            return 0
        now_s = time.monotonic()
        refused = 0
        for (topic, attempt), answer in zip(asks, answers, strict=True):
            if not answer["granted"]:
                refused += 1
                self._try_later(topic, attempt, now_s, answer["retry_after_ms"] / 1000)
        return len(asks) - refused

    def _try_later(self, topic: str, attempt: int, now_s: float, wait_s: float) -> None:
        if attempt < ATTEMPTS_MAX and len(self._waiting) < WAITING_MAX:
            due_s = now_s + wait_s * 2 ** (attempt - 1) * self._dice.uniform(1.0, 1.2)
            heapq.heappush(self._waiting, (due_s, next(self._order), topic, attempt + 1))


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
