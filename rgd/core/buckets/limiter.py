"""Decides requests: walks a name's chain of levels and takes all or nothing.

Laws (design 2): all levels apply and the most stringent wins; nothing is taken
from any bucket unless the whole request is granted, or the part of it where
the caller accepts a part; each distinct group of topic, namespace and tenant
is charged once; a shadow group counts what it would refuse and refuses nothing.
A refusal is demand for a group as far as all other levels would have granted it.
Where something raises, what was taken is given back: its caller gets no answer.

This is the short road: plain calls, no events. Which share a group has is
decided elsewhere (`rgd.core.broker.sharing`) and set here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from rgd.core.buckets.chain import Chain, Chains, NameAsked
from rgd.core.buckets.decision import (
    Answer,
    Decision,
    Level,
    PoliciesUnknown,
    Request,
    ungoverned,
)
from rgd.core.buckets.level import BucketSettings, GroupKey, GroupState, LevelState
from rgd.core.buckets.levels import ShareOf
from rgd.core.buckets.split import SplitShare
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import OnUnknown, Rates, TopicSplit
from rgd.core.units import MILLI, Dimension, Kind, Nanos, Pair

_NOTHING: Final = Pair()

#: How long who is refused because no policies are known is told to wait.
UNKNOWN_RETRY_MS: Final = 1000


class Ungoverned(NamedTuple):
    """Requests that were decided without a limit."""

    #: Granted because no limit applied, or no policies were known.
    granted: int
    unknown_granted: int
    unknown_refused: int


class Limiter:
    """Every bucket of one broker, and the decisions made with them."""

    def __init__(
        self,
        settings: BucketSettings,
        share_of: ShareOf,
        *,
        topic_split: TopicSplit = TopicSplit.SHARED,
    ) -> None:
        self._chains = Chains(settings, share_of, topic_split)
        #: Groups that ask for an early report, in order: their demand jumped (`Rounds.tick`), or they
        #: refused work and the peers know nothing of it. The report empties it.
        self.urgent: dict[GroupKey, None] = {}
        #: The counters of groups that requests added to since the last tick; `touched.on_first` is
        #: called when there is one.
        self.touched = self._chains.touched
        #: Called when a group becomes urgent because it refused and no peer knows of it.
        self.on_unreported: Callable[[], None] = _nobody_listens
        #: Brokers that share the quotas, this one too.
        self.live_brokers = 1
        #: Requests for names that no limit applies to.
        self.ungoverned_total = 0
        #: What becomes of requests as no policies are known; None: they are.
        self.unknown: OnUnknown | None = None
        #: Requests granted, and refused, because no policies were known.
        self.unknown_granted_total = 0
        self.unknown_refused_total = 0
        self._drained = Ungoverned(0, 0, 0)

    def acquire(self, request: Request, now: Nanos) -> Answer:
        """Decide one request.

        Raises:
            UnknownGroup: `request.group` names no group.
        """
        if self.unknown is not None:
            return self._acquire_unknown(request)
        chain = self._chains.of(request, now)
        if not chain.levels:
            self.ungoverned_total += 1
            return ungoverned(request)
        if request.held != _NOTHING:
            for group in chain.groups:
                group.counters.hold(request.held, request.topic)
        if request.partial:
            return _acquire_part(self, request, chain, now)
        return _acquire_whole(self, request, chain, now)

    @property
    def book(self) -> PolicyBook:
        """The policies in force."""
        return self._chains.book

    def drain_ungoverned(self) -> Ungoverned:
        """What was decided without a limit since the last call."""
        now = Ungoverned(
            self.ungoverned_total, self.unknown_granted_total, self.unknown_refused_total
        )
        before, self._drained = self._drained, now
        return Ungoverned(*(count - counted for count, counted in zip(now, before, strict=True)))

    def _acquire_unknown(self, request: Request) -> Answer:
        """Answer while no policies are known."""
        if self.unknown is OnUnknown.DENY:
            self.unknown_refused_total += 1
            return PoliciesUnknown(UNKNOWN_RETRY_MS)
        self.unknown_granted_total += 1
        self.ungoverned_total += 1
        return ungoverned(request)

    def set_book(self, book: PolicyBook, now: Nanos, *, is_whole: bool = False) -> None:
        """Put a policy book in force; buckets of what stays keep their tokens and debt.

        `is_whole` takes everything as changed, whatever a change that failed left behind.
        """
        self._chains.set_book(book, now, is_whole=is_whole)

    def set_share(self, key: GroupKey, share: Rates, now: Nanos) -> None:
        """Change this broker's share of a group, if it is in use."""
        self._chains.set_share(key, share, now)

    def end_round(self, now: Nanos) -> None:
        """Begin to weigh the topics of divided shares anew, once a round; `work` goes on with it."""
        self._chains.end_round(now)

    @property
    def is_behind(self) -> bool:
        """Whether `work` has something to do."""
        return self._chains.is_behind

    def work(self, now: Nanos) -> None:
        """Do a slice of what a change or a round's end left to do, well under 2 ms of one core."""
        self._chains.work(now)

    def split_of(self, key: GroupKey) -> SplitShare | None:
        """How a group's share is divided over topics, if it is."""
        return self._chains.split_of(key)

    def limit(
        self, level: Level, kind: Kind, *, topic: str = "", subscription: str = ""
    ) -> LevelState | None:
        """The buckets of a broker's, topic's or subscription's limit, if it was asked for; makes nothing."""
        return self._chains.limit(level, kind, topic, subscription)

    def set_group_burst(self, burst_ns: int, now: Nanos) -> None:
        """Change the depth of every group's buckets; 0 grants one request at a time, on debt."""
        self._chains.set_group_burst(burst_ns, now)

    def states(self) -> Iterator[GroupState]:
        """Every (group, kind) that was asked for since it exists."""
        return self._chains.states()

    def names_asked(self) -> list[NameAsked]:
        """What was asked for since the book came into force (`Chains.names_asked`)."""
        return self._chains.names_asked()

    @property
    def resolved_total(self) -> int:
        """Names that were asked for the first time so far (`Chains.resolved_total`)."""
        return self._chains.resolved_total

    def state(self, key: GroupKey) -> GroupState | None:
        """One (group, kind), if it was ever asked for."""
        return self._chains.state(key)


def _acquire_whole(limiter: Limiter, request: Request, chain: Chain, now: Nanos) -> Answer:
    cost = Pair(request.messages, request.bytes)
    refusing: list[LevelState] = []
    for level in chain.levels:
        if level.shadow:
            continue
        if too_large := level.too_large(cost):
            return too_large
        if not level.admits(cost, now):
            refusing.append(level)
    if not refusing:
        _charge(request, chain, cost, now)
        return Decision(granted=True, messages=cost.messages, bytes=cost.bytes)
    # Who admits makes nobody wait.
    longest, wait_ms, dimension = _longest_wait(refusing, cost, now)
    (longest.cuts or longest.begin_cuts()).count(cost, dimension, request.attempt, now)
    for group in chain.groups:
        group.count_refusal(longest.level, cost)
    if len(chain.levels) == 1:
        for group in chain.groups:
            _refuse(limiter, group, request, cost, wait_ms, now)
        for part in chain.parts:
            part.refuse(cost)
    else:
        _count_unmet(limiter, _Refusal(request, chain, _NOTHING, wait_ms, refusing), now)
    return _cut(longest, dimension, _NOTHING, wait_ms, now)


def _acquire_part(limiter: Limiter, request: Request, chain: Chain, now: Nanos) -> Answer:
    asked = Pair(request.messages, request.bytes)
    granted, cutter = _largest_part(chain, asked, now)
    if cutter is None:
        _charge(request, chain, granted, now)
        return Decision(granted=True, messages=granted.messages, bytes=granted.bytes)
    level, dimension = cutter
    # A caller that takes parts can come back as soon as there is one unit of what it needs.
    needed = Pair(min(1, asked.messages), min(1, asked.bytes))
    if granted.messages < needed.messages or granted.bytes < needed.bytes:
        granted = _NOTHING
        level, wait_ms, dimension = _longest_wait(chain.levels, needed, now)
    else:
        _charge(request, chain, granted, now)
        _, wait_ms, _ = _longest_wait(chain.levels, needed, now)
    try:
        unmet = Pair(asked.messages - granted.messages, asked.bytes - granted.bytes)
        (level.cuts or level.begin_cuts()).count(unmet, dimension, request.attempt, now)
        for group in chain.groups:
            group.count_refusal(level.level, unmet)
        _count_unmet(limiter, _Refusal(request, chain, granted, wait_ms, [level]), now)
        return _cut(level, dimension, granted, wait_ms, now)
    except Exception:
        _give_back(chain, granted)
        raise


def _largest_part(
    chain: Chain, asked: Pair, now: Nanos
) -> tuple[Pair, tuple[LevelState, Dimension] | None]:
    """What every level would grant, and the last level that lowered it."""
    left = asked
    cutter: tuple[LevelState, Dimension] | None = None
    for level in chain.levels:
        if level.shadow:
            continue
        if (messages := level.available(Dimension.MESSAGES, now)) < left.messages:
            left, cutter = Pair(messages, left.bytes), (level, Dimension.MESSAGES)
        if (size := level.available(Dimension.BYTES, now)) < left.bytes:
            left, cutter = Pair(left.messages, size), (level, Dimension.BYTES)
    return left, cutter


def _longest_wait(
    levels: Sequence[LevelState], cost: Pair, now: Nanos
) -> tuple[LevelState, int, Dimension]:
    """The first level that makes a caller wait longest, with how long (ms) and what for."""
    longest: tuple[LevelState, int, Dimension] | None = None
    longest_ms = -1
    for level in levels:
        if level.shadow:
            continue
        wait_ms, dimension = level.wait(cost, now)
        if wait_ms > longest_ms:
            longest, longest_ms = (level, wait_ms, dimension), wait_ms
    assert longest is not None, "a level that is no shadow has refused"
    return longest


def _charge(request: Request, chain: Chain, cost: Pair, now: Nanos) -> None:
    level: LevelState | None = None
    try:
        for level in chain.levels:
            if level.shadow and not level.admits(cost, now):
                level.count_shadow(cost)
            else:
                level.take(cost)
        level = None
        for group in chain.groups:
            group.counters.admit(cost, request.attempt, request.topic, now)
    except Exception:
        _give_back(chain, cost, before=level)
        raise


def _give_back(chain: Chain, cost: Pair, *, before: LevelState | None = None) -> None:
    """Undo a charge whose caller gets no answer, on the levels before one or on all.

    A shadow level refuses nothing, and whether it was charged is not known.
    """
    back = Pair(-cost.messages, -cost.bytes)
    for level in chain.levels:
        if level is before:
            return
        if not level.shadow:
            level.take(back)


class _Refusal(NamedTuple):
    """What was asked and not, or not all, granted."""

    request: Request
    chain: Chain
    granted: Pair
    retry_after_ms: int
    #: The levels that refused the whole, or the one that cut the part.
    refusing: list[LevelState]


def _count_unmet(limiter: Limiter, refusal: _Refusal, now: Nanos) -> None:
    """Count for each group what of a refusal is demand for more share of it."""
    request, chain, granted, retry_after_ms, refusing = refusal
    unmet = Pair(request.messages - granted.messages, request.bytes - granted.bytes)
    for group in chain.groups:
        name, counted = group.key.group, unmet
        if request.attempt > 1:
            # A retry wants nothing new; it is counted as refused where it was.
            if name not in [level.group for level in refusing]:
                continue
        elif len(chain.levels) > 1:
            counted = _unmet_by(limiter, name, refusal, now)
            if counted == _NOTHING:
                continue
        _refuse(limiter, group, request, counted, retry_after_ms, now)
        for part in chain.parts:
            if part.group == name:
                part.refuse(counted)


def _refuse(  # noqa: PLR0917 -- on the short road a tuple around them costs a tenth of a refusal
    limiter: Limiter,
    group: GroupState,
    request: Request,
    counted: Pair,
    retry_after_ms: int,
    now: Nanos,
) -> None:
    group.counters.refuse(counted, request.attempt, request.topic, retry_after_ms, now)
    if not group.reported:
        # Once is enough: the report that follows says it.
        group.reported = True
        _call_out(limiter, group)


def _unmet_by(limiter: Limiter, name: str, refusal: _Refusal, now: Nanos) -> Pair:
    """What all levels but the group would have granted beyond what was, as a flow."""
    request, chain, granted, _, refusing = refusal
    live = limiter.live_brokers
    if not request.partial:
        for level in refusing:
            # A twin that flows no faster than its bucket never has more than that.
            if level.group != name and not level.flows_faster(live):
                return _NOTHING
    # A topic's part of the group's share goes by the group's name, and is no other level.
    others = [level for level in chain.levels if level.group != name and not level.shadow]
    messages, size = request.messages, request.bytes
    for level in others:
        # What was granted is already charged, to the twins as to the buckets.
        would_grant = level.would_grant(name, live, now)
        messages = min(messages, granted.messages + would_grant.messages)
        size = min(size, granted.bytes + would_grant.bytes)
        if not request.partial and (messages < request.messages or size < request.bytes):
            return _NOTHING
    unmet = Pair(messages - granted.messages, size - granted.bytes)
    for level in others:
        level.forgo(name, unmet)
    return unmet


def _call_out(limiter: Limiter, group: GroupState) -> None:
    limiter.urgent[group.key] = None
    limiter.on_unreported()


def _cut(
    level: LevelState, dimension: Dimension, granted: Pair, wait_ms: int, now: Nanos
) -> Decision:
    return Decision(
        granted=granted != _NOTHING,
        messages=granted.messages,
        bytes=granted.bytes,
        limited_by=level.level,
        group=level.group,
        dimension=dimension,
        retry_after_ms=wait_ms or 1,
        quota=_whole(level.quota, dimension),
        remaining=level.remaining(dimension, now),
    )


def _whole(rates: Rates, dimension: Dimension) -> int:
    return (rates.of(dimension) or 0) // MILLI


def _nobody_listens() -> None:
    """The default of `Limiter.on_unreported`."""
