"""Policies of a stock Pulsar: its admin API is polled, and admin writes here are refused.

Laws: a change in Pulsar is in force here within two polls. A bad answer never lifts a limit: the
policy in question stays unchanged (`rgd.ports.stock`), and a completely failed poll changes nothing. Polls
never overlap, and the pause after a poll is at least as long as the poll.

The last result is stored on disk. A daemon that starts while Pulsar is unreachable begins with
it, otherwise with the groups file if there is one, and reports that. Without either, no policies are known
until Pulsar was read, and `policies.unknown` decides the answer to requests.

Every poll reads all groups and namespaces. It reads only topics that callers asked this daemon
about, those whose backlogs it polls, and those known to have policies, because Pulsar has no bulk call and most topics have none. So
daemons know different topics, and topics are not part of the hash that they compare.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, TypeVar

import structlog
from typing_extensions import override

from rgd.app.policies.source import Figures, OnSnapshot, ReadOnlyPolicies
from rgd.app.policies.stock_topics import SeenTopics
from rgd.core.buckets.decision import Name
from rgd.core.policies.model import NOT_SET, Attachments, Backlogs, Limits
from rgd.core.policies.names import partitioned_topic_of
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot, with_tenants
from rgd.ports.stock import NO_QUOTAS, Reading, StockError, StockPolicies, StockPulsar, StockStore
from rgd.wire.policies import policies_hash

#: Each pause is shortened by up to this fraction of a poll, so that daemons do not poll in step.
JITTER: Final = 0.1

#: Returns the names that callers asked for (`rgd.core.gate.looks.names_asked`).
NamesAsked = Callable[[], Sequence[Name]]

#: Returns the topics (full names) whose backlogs are polled.
TopicsPolled = Callable[[], Sequence[str]]

#: What a policy that is not set is.
_NOTHING: Final = (None, "", NOT_SET, NO_QUOTAS)

_Policies = TypeVar("_Policies")

_log = structlog.get_logger("rgd.policies")


def nothing_polled() -> Sequence[str]:
    """No backlogs are polled."""
    return ()


@dataclass(frozen=True, slots=True)
class Origins:
    """The inputs of the policies."""

    stock: StockPulsar
    store: StockStore
    #: In force until Pulsar was read once, by this run or an earlier one. None: there is none.
    stand_in: PolicySnapshot | None
    names_asked: NamesAsked
    topics_polled: TopicsPolled = nothing_polled


class PulsarAdminPolicies(ReadOnlyPolicies):
    """Follows a stock Pulsar; fulfils `rgd.app.policies.source.Policies`.

    Args:
        origins: the inputs.
        dice: for the pauses.
        poll_s: from the beginning of a poll to that of the next.
        topic_calls_max: calls of one poll for topics' policies; topics that do not fit take turns. 0: topics have none.
    """

    _owner = (
        "Pulsar's admin API (policies.source is pulsar-admin); change it there, with pulsar-admin"
    )

    def __init__(
        self, origins: Origins, dice: random.Random, *, poll_s: float, topic_calls_max: int
    ) -> None:
        self._origins = origins
        self._poll_s = poll_s
        self._topic_calls_max = topic_calls_max
        self._dice = dice
        stored = origins.store.load()
        self._known = StockPolicies() if stored is None else stored
        if not topic_calls_max:
            self._known = replace(self._known, topics={})
        #: A description of the policies in force while Pulsar cannot be read.
        self._in_force = "what the last run read"
        self._snapshot, self._hash = snapshot_of(self._known), hash_of(self._known)
        if stored is None:
            self._in_force = "nothing"
            self._snapshot, self._hash = EMPTY_SNAPSHOT, 0
            if origins.stand_in is not None:
                self._in_force = "the groups file"
                self._snapshot, self._hash = origins.stand_in, policies_hash(origins.stand_in)
        #: Whether any policies are known.
        self.is_known = stored is not None or origins.stand_in is not None
        self._is_read = self._is_stored = False
        #: True once the start is decided: Pulsar was read or found unreachable, or an
        #: earlier run's policies are in force.
        self.is_settled = stored is not None
        #: Why Pulsar's policies are not completely in force; None if they are. And why they are not stored.
        self._unread: str | None = f"Pulsar was not read yet; in force is {self._in_force}"
        self._unkept: str | None = None
        self._faulty: frozenset[str] = frozenset()
        self._is_down = False
        self._is_slow_logged = self._are_turns_logged = False
        self._seen = SeenTopics()
        #: The names asked for before the last change of policies, which the limiter has forgotten.
        self._asked_before: Sequence[Name] = ()

    @property
    def trouble(self) -> str | None:  # type: ignore[override]  # read only, as in the protocol
        """Why the policies may be old, now or after a start; None if they are not."""
        return "; ".join(filter(None, (self._unread, self._unkept))) or None

    @override
    def figures(self) -> Figures:
        return Figures(is_old=self._unread is not None)

    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""
        return self._snapshot

    async def follow(self, on_snapshot: OnSnapshot) -> None:
        """Poll until cancelled, and report every change."""
        on_snapshot(self._snapshot, self._hash)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await self.poll(on_snapshot)
            took_s = loop.time() - began
            if took_s > self._poll_s and not self._is_slow_logged:
                self._is_slow_logged = True
                _log.warning("a poll takes longer than policies.poll_ms", seconds=round(took_s, 1))
            pause_s = self._poll_s * (1 - JITTER * self._dice.random()) - took_s
            await asyncio.sleep(max(pause_s, took_s))

    async def poll(self, on_snapshot: OnSnapshot) -> None:
        """Read Pulsar once, and put changes in force."""
        asked = [*self._asked_before, *self._origins.names_asked()]
        self._asked_before = ()
        polled = self._origins.topics_polled()
        topics = self._topics_to_read(asked, polled)
        try:
            reading = await self._origins.stock.read(self._known, topics)
        except StockError as error:
            self._tell_down(error)
        else:
            if self._is_down:
                self._is_down = False
                _log.info("reads policies from Pulsar again")
            try:
                await self._take(reading, on_snapshot)
            except Exception:
                # The result was not stored as known, so the next poll tries again.
                self._unread = "internal error: what Pulsar says now could not be put in force"
                raise
        self.is_settled = True

    async def close(self) -> None:
        """Close the connections."""
        await self._origins.stock.close()

    async def _take(self, reading: Reading, on_snapshot: OnSnapshot) -> None:
        self._tell_faults(reading.faults)
        if not self._is_read or reading.policies != self._known:
            await self._put_in_force(reading.policies, on_snapshot)
        self._known = reading.policies
        if not self._is_stored:
            try:
                await asyncio.to_thread(self._origins.store.store, reading.policies)
                self._is_stored, self._unkept = True, None
            except OSError as error:
                self._unkept = f"they cannot be kept on disk for the next start: {error}"

    async def _put_in_force(self, policies: StockPolicies, on_snapshot: OnSnapshot) -> None:
        snapshot, policies_hash = await asyncio.to_thread(_digest, policies)
        self._asked_before = self._origins.names_asked()
        # Set before the callback, which reads `is_known`.
        was_known, self.is_known = self.is_known, True
        try:
            on_snapshot(snapshot, policies_hash)
        except BaseException:
            self.is_known = was_known
            raise
        # Only policies in force count as known, so an exception before this line leads to another try.
        self._is_read, self._known, self._is_stored = True, policies, False
        self._snapshot, self._hash = snapshot, policies_hash

    def _topics_to_read(
        self, asked: Sequence[Name], polled: Sequence[str]
    ) -> dict[str, frozenset[str]]:
        calls_max = self._topic_calls_max
        if not calls_max:
            return {}
        # A partition has the policies of its whole topic.
        always = {*self._known.topics, *(partitioned_topic_of(name) or name for name in polled)}
        chosen, wanted = self._seen.choose(asked, always, calls_max)
        if len(chosen) < wanted and not self._are_turns_logged:
            self._are_turns_logged = True
            _log.warning(
                "topics take turns: more were asked for than policies.topic_calls_max lets be read",
                topics=wanted,
                read=len(chosen),
            )
        return chosen

    # Logging: each problem once when it begins, and once when it is over.

    def _tell_down(self, error: StockError) -> None:
        if self._is_read:
            self._in_force = "what was read last"
        self._unread = f"{error}; in force is {self._in_force}"
        if not self._is_down:
            self._is_down = True
            _log.warning(
                "cannot read policies from Pulsar", reason=str(error), in_force=self._in_force
            )

    def _tell_faults(self, faults: Mapping[str, str]) -> None:
        fresh = [what for what in faults if what not in self._faulty]
        if fresh:
            _log.warning(
                "kept what was known where Pulsar's answer cannot be used",
                answers=len(faults),
                first=faults[fresh[0]],
            )
        elif self._faulty and not faults:
            _log.info("all of Pulsar's answers can be used again")
        self._faulty = frozenset(faults)
        first = next(iter(faults.values()), None)
        told = (
            f"{len(faults)} answers cannot be used whole, what was known of the rest stays: {first}"
        )
        self._unread = None if first is None else told


def snapshot_of(stock: StockPolicies) -> PolicySnapshot:
    """The snapshot of a stock Pulsar's policies."""
    namespaces, topics = stock.namespaces, stock.topics
    return PolicySnapshot(
        dict(stock.groups),
        Attachments(namespaces=_set(namespaces, attrgetter("group"))),
        Limits(
            stock.broker,
            topics=_set(topics, attrgetter("limit")),
            subscriptions={
                (name, subscription): limit
                for name, policies in topics.items()
                for subscription, limit in policies.by_subscription.items()
            },
            namespaces=_set(namespaces, attrgetter("limit")),
            namespace_subscriptions=_set(namespaces, attrgetter("subscriptions")),
            topic_subscriptions=_set(topics, attrgetter("subscriptions")),
        ),
        named=with_tenants(namespaces),
        backlogs=Backlogs(
            _set(namespaces, attrgetter("backlogs")), _set(topics, attrgetter("backlogs"))
        ),
    )


def _set(policies: Mapping[str, _Policies], of: Callable[[_Policies], Any]) -> dict[str, Any]:
    """One of the policies of each name, where it is set."""
    return {name: found for name, one in policies.items() if (found := of(one)) not in _NOTHING}


def hash_of(stock: StockPolicies) -> int:
    """The hash that daemons compare, over the policies that every daemon reads: no topics'."""
    return policies_hash(snapshot_of(replace(stock, topics={})))


def _digest(stock: StockPolicies) -> tuple[PolicySnapshot, int]:
    return snapshot_of(stock), hash_of(stock)
