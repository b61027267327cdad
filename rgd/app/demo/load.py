"""A process that asks one daemon as a broker would: many topics, retries with backoff.

Law: it believes nobody. What was wanted and what was admitted is counted here.
What one tick asks for arose since the tick before, so its counts are spread
over that time: on a busy machine a late tick moves nothing into another round.

Protocol: one JSON object a line. In: `{"wanted_per_s": 900}` changes the rate
from now on; end of input ends the process. Out, several times a second:
`{"slices": [[at_ms, wanted, admitted, refused, failed], ...], "late": [[due_ms, began_ms], ...]}`
in milliseconds of the machine's monotonic clock; `late` are ticks for which the
machine had no time, so that tokens nobody could ask for ran over.
"""

import asyncio
import heapq
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import Final

from rgd.adapters.http.client import DaemonClient, DaemonRefused, DaemonUnreachable
from rgd.app.demo.plan import NAMESPACE

#: Work is sent this often, as a broker sends what its producers brought meanwhile.
TICK_S: Final = 0.02
#: A tick that begins so much after it was due is reported.
LATE_S: Final = 0.1
#: Counts are reported for slices of this length.
SLICE_MS: Final = 20
TELL_EVERY_TICKS: Final = 10

TOPICS: Final = 50
MESSAGE_BYTES: Final = 512
#: A refused message is given up after so many tries.
ATTEMPTS_MAX: Final = 4
#: Refused messages that wait for their next try; more are given up.
WAITING_MAX: Final = 5_000


class Counts:
    """Wanted, admitted, refused and failed messages, slice by slice."""

    def __init__(self) -> None:
        self._slices: dict[int, list[int]] = {}

    def add(self, begin_ms: int, end_ms: int, counted: Sequence[int]) -> None:
        """Count what happened between two moments, evenly over the slices between them."""
        first, last = begin_ms // SLICE_MS, max(begin_ms, end_ms - 1) // SLICE_MS
        count = last - first + 1
        for place in range(count):
            row = self._slices.setdefault((first + place) * SLICE_MS, [0, 0, 0, 0])
            for column, messages in enumerate(counted):
                row[column] += messages * (place + 1) // count - messages * place // count

    def take(self) -> list[list[int]]:
        """Everything counted since the last call: [at_ms, wanted, admitted, refused, failed]."""
        told = [[at, *counts] for at, counts in sorted(self._slices.items())]
        self._slices.clear()
        return told


class Load:
    """New work at a rate, and retries of what was refused."""

    def __init__(self, client: DaemonClient, counts: Counts, dice: random.Random) -> None:
        self._client = client
        self._counts = counts
        self._dice = dice
        self._topics: Iterator[str] = cycle(f"topic-{place}" for place in range(TOPICS))
        self._order = count()
        #: (due, order, topic, attempt) of what was refused.
        self._waiting: list[tuple[float, int, str, int]] = []
        self._owed = 0.0
        self.wanted_per_s = 0.0

    async def tick(self, now_s: float, elapsed_s: float) -> None:
        """Send what is new and what is due again, and count what became of it."""
        self._owed += self.wanted_per_s * elapsed_s
        fresh, self._owed = int(self._owed), self._owed % 1
        asks = [(next(self._topics), 1) for _ in range(fresh)]
        if self.wanted_per_s == 0:
            self._waiting.clear()
        while self._waiting and self._waiting[0][0] <= now_s:
            _, _, topic, attempt = heapq.heappop(self._waiting)
            asks.append((topic, attempt))
        admitted, refused, failed = await self._ask(asks) if asks else (0, 0, 0)
        counted = (fresh, admitted, refused, failed)
        self._counts.add(_ms(now_s - elapsed_s), _ms(now_s), counted)

    async def _ask(self, asks: list[tuple[str, int]]) -> tuple[int, int, int]:
        """Ask for messages; how many were admitted, refused, and not answered."""
        requests = [_request(topic, attempt) for topic, attempt in asks]
        try:
            if len(requests) == 1:
                answers = [await self._client.acquire(requests[0])]
            else:
                answers = await self._client.acquire_all(requests)
        except (DaemonUnreachable, DaemonRefused):
            return 0, 0, len(asks)
        now_s = time.monotonic()
        refused = 0
        for (topic, attempt), answer in zip(asks, answers, strict=True):
            if not answer["granted"]:
                refused += 1
                self._try_later(topic, attempt, now_s, answer["retry_after_ms"] / 1000)
        return len(asks) - refused, refused, 0

    def _try_later(self, topic: str, attempt: int, now_s: float, wait_s: float) -> None:
        if attempt < ATTEMPTS_MAX and len(self._waiting) < WAITING_MAX:
            due_s = now_s + wait_s * 2 ** (attempt - 1) * self._dice.uniform(1.0, 1.2)
            heapq.heappush(self._waiting, (due_s, next(self._order), topic, attempt + 1))


def _request(topic: str, attempt: int) -> dict[str, object]:
    tenant, namespace = NAMESPACE
    return {
        "tenant": tenant,
        "namespace": namespace,
        "topic": topic,
        "bytes": MESSAGE_BYTES,
        "attempt": attempt,
    }


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


async def main(base: str, seed: int) -> None:
    """Ask the daemon at `base` until standard input ends."""
    counts = Counts()
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    async with DaemonClient(base) as client:
        load = Load(client, counts, random.Random(seed))  # noqa: S311 - jitter, not a secret
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(_ask_on(load, counts))
            async for line in commands:
                load.wanted_per_s = float(json.loads(line)["wanted_per_s"])
            asking.cancel()


async def _ask_on(load: Load, counts: Counts) -> None:
    last_s = time.monotonic()
    late: list[list[int]] = []
    for tick in count(1):
        asleep_s = time.monotonic()
        # Without the wait for the last answers: a daemon that is slow is not excused.
        due_s = max(asleep_s, last_s + TICK_S)
        await asyncio.sleep(due_s - asleep_s)
        now_s = time.monotonic()
        if now_s - due_s > LATE_S:
            late.append([_ms(due_s), _ms(now_s)])
        await load.tick(now_s, now_s - last_s)
        last_s = now_s
        if tick % TELL_EVERY_TICKS == 0:
            sys.stdout.write(json.dumps({"slices": counts.take(), "late": late}) + "\n")
            sys.stdout.flush()
            late = []


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
