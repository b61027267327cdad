"""Carries out evictions on a stock Pulsar (`backlog.enforce`), or says what it would do.

Laws: only topics that this daemon polled are evicted, and only by their own broker, which refuses where it
no longer owns the topic. A subscription moves only forward, and one position is evicted at most once,
however often a check names it, as long as its subscription is one of `DONE_MAX`. Without `backlog.enforce` nothing is sent to Pulsar.

An eviction counts in `pulsar_storage_backlog_quota_exceeded_evictions_total` when Pulsar has taken it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Final

import structlog

from rgd.core.backlog.model import TIME_MS_MAX, Eviction, Position, Source
from rgd.ports.metrics import Sample
from rgd.ports.stock_backlogs import EvictionOutcome, StockBacklogs

#: Most evictions that wait; further ones are dropped and counted, and the next check names them again.
WAITING_MAX: Final = 10_000
#: Most subscriptions whose last eviction is remembered from check to check; those that were evicted first are
#: forgotten. Their evictions may be tried again, which moves nothing.
DONE_MAX: Final = 100_000

_log = structlog.get_logger("rgd.backlogs")

#: A subscription of a topic.
_Key = tuple[str, str]
#: The eviction that the last check named for one, if any.
Named = Callable[[str, str], Eviction | None]
OnEvicted = Callable[[Eviction], None]


class EvictionCarrier:
    """Takes evictions from checks, and carries out one after the other.

    Args:
        is_enforced: `backlog.enforce`.
    """

    def __init__(self, *, is_enforced: bool) -> None:
        self._is_enforced = is_enforced
        self._waiting: dict[_Key, None] = {}
        self._arrived = asyncio.Event()
        #: What was evicted last of each subscription, or would have been: up to which position, and
        #: before which time. In the order of first evictions.
        self._done: dict[_Key, tuple[Position, int]] = {}
        self._outcomes: Counter[str] = Counter()
        self._is_failing = False

    def samples(self) -> Iterator[Sample]:
        """How many evictions had which outcome."""
        for outcome, count in self._outcomes.items():
            yield Sample("rgd_backlog_evictions_total", (outcome,), count)

    def add(self, evictions: tuple[Eviction, ...]) -> None:
        """Take what a check named; never waits."""
        for key in list(self._done)[:-DONE_MAX]:
            del self._done[key]
        for eviction in evictions:
            key = (eviction.topic, eviction.subscription)
            if not self._is_due(key, eviction):
                continue
            if not self._is_enforced:
                self._done[key] = _target(eviction)
                self._outcomes["dry_run"] += 1
                _log.info("would evict a backlog if backlog.enforce were set", **_shown(eviction))
            elif key in self._waiting or len(self._waiting) < WAITING_MAX:
                self._waiting[key] = None
                self._arrived.set()
            else:
                self._outcomes["dropped"] += 1

    def forget(self, topics: Collection[str]) -> None:
        """Drop what waits for topics that are not polled any more."""
        # Most polls lose no topic, and both may be long.
        for table in (self._waiting, self._done) if topics else ():
            for key in [key for key in table if key[0] in topics]:
                del table[key]

    async def follow(self, stock: StockBacklogs, named: Named, on_evicted: OnEvicted) -> None:
        """Carry out evictions until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await self.carry_out(stock, named, on_evicted)

    async def carry_out(self, stock: StockBacklogs, named: Named, on_evicted: OnEvicted) -> None:
        """Carry out all evictions that wait and are still named, and say which Pulsar has taken."""
        while self._waiting:
            key = next(iter(self._waiting))
            del self._waiting[key]
            # Of many the last ones wait for minutes, and a quota may have been raised meanwhile.
            eviction = named(*key)
            if eviction is None or not self._is_due(key, eviction):
                continue
            outcome, reason = await stock.evict(eviction)
            self._note(key, eviction, outcome, reason)
            if outcome is EvictionOutcome.DONE:
                on_evicted(eviction)

    def _note(self, key: _Key, eviction: Eviction, outcome: EvictionOutcome, reason: str) -> None:
        self._outcomes[outcome] += 1
        if outcome is EvictionOutcome.DONE:
            self._done[key] = _target(eviction)
            self._is_failing = False
            _log.info("evicted a backlog", **_shown(eviction))
        elif outcome is EvictionOutcome.FAILED and not self._is_failing:
            self._is_failing = True
            _log.warning(
                "cannot evict a backlog; the next check tries again",
                reason=reason,
                remedy="check the grants of the admin API's token (docs/backlog.md)",
                **_shown(eviction),
            )

    def _is_due(self, key: _Key, eviction: Eviction) -> bool:
        done, (to, before_ms) = self._done.get(key), _target(eviction)
        is_done = done is not None and to <= done[0] and before_ms <= done[1]
        return eviction.source is Source.POLLED and not is_done


def _target(eviction: Eviction) -> tuple[Position, int]:
    before_ms = eviction.published_before_ms
    return eviction.to, TIME_MS_MAX if before_ms is None else before_ms


def _shown(eviction: Eviction) -> dict[str, str]:
    return {
        "topic": eviction.topic,
        "subscription": eviction.subscription,
        "to": f"{eviction.to.ledger}:{eviction.to.entry}",
        "exceeded": ",".join(eviction.exceeded),
    }
