"""The gate itself: the buckets and the leases, behind the calls of `rgd.core.gate.port`.

In the plane's process a group that is asked for the first time gets its slot id and share at once, by `first_share`.
A gate that cannot call the plane grants an equal part of the quota meanwhile, notes the group (`asked`), and gets both with
`give_slot`. What is counted of the group until then is not lost: its first page has it.

The gate outlives planes. When one has gone, `forget_slots` takes back what was its own; policies, rates, buckets, counters
and leases stay. The next one asks for `groups_in_use` and gives them slot ids (`resume`). Topics that backlogs blocked are
unblocked, because the next plane cannot know which they were; its first checks block them again. Rates that nobody confirms
hold for `hold_rounds` after the plane's last word; then `isolate` is called.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, TypeVarTuple

from typing_extensions import override

from rgd.core.bounds import BOUNDS, LeaseBounds
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.levels import ShareOf
from rgd.core.buckets.limiter import Limiter
from rgd.core.counts.counters import NO_SLOT
from rgd.core.counts.page import Page, pack
from rgd.core.leases.leases import Leases
from rgd.core.policies.model import Group, GroupKey, OnUnknown, Rates, TopicSplit
from rgd.core.units import Kind, Nanos

#: How many slot ids, and blocked topics, one call of `forget_slots` takes back.
FORGOTTEN_A_CALL: Final = 5_000

_Args = TypeVarTuple("_Args")
_Result = TypeVar("_Result")


def hold_rounds(isolation_hold_rounds: int, expiry_rounds: int) -> int:
    """For how many rounds a gate keeps its rates without a word of a plane.

    As long as a broker does that hears nothing of the exchange: its hold begins once a round's message is missing, and ends
    when the peers drop it.
    """
    return min(1 + isolation_hold_rounds, expiry_rounds)


class LocalGate(Limiter):
    """The buckets and the leases; fulfils `rgd.core.gate.port.Gate`.

    Args:
        settings: of its buckets.
        first_share: gives a group that is asked for the first time its slot id and share; without it, groups are noted.
        topic_split: of groups whose policy does not set one.
        bounds: of its leases.
    """

    def __init__(
        self,
        settings: BucketSettings,
        first_share: ShareOf | None = None,
        *,
        topic_split: TopicSplit = TopicSplit.SHARED,
        bounds: LeaseBounds = BOUNDS.leases,
    ) -> None:
        super().__init__(settings, first_share or self._noted, topic_split=topic_split)
        self.leases = Leases(self, bounds)
        #: Groups that were asked for the first time, and of which the plane does not know; it empties the list.
        self.asked: list[GroupKey] = []
        #: Of which pages are being looked at (`rgd.core.gate.looks.listed`).
        self.copy: Sequence[Any] = ()
        #: Whether a plane that is there has told shares.
        self.is_led = False
        #: By number and layout of a shard: the last sequence that the plane is known to have used.
        self.sequences: Mapping[tuple[int, int], int] = {}

    def set_unknown(self, unknown: OnUnknown | None) -> None:
        """How to answer while no policies are known; None: they are known."""
        self.unknown = unknown

    def set_shares(self, shares: Iterable[tuple[int, Rates]], now: Nanos) -> None:
        """Put shares of groups in force."""
        for slot, share in shares:
            self.set_share(slot, share, now)

    def resume(self, groups: Iterable[tuple[GroupKey, int]]) -> tuple[Page, list[Sequence[int]]]:
        """As `rgd.core.gate.port.Gate`."""
        states = [self.know(key, slot) for key, slot in groups]
        # What was touched when no plane was there has poked nobody.
        self.news.on_news()
        counters = [state.counters for state in states if state is not None]
        return pack(counters), [one.wanted for one in counters]

    def note_sequences(self, sequences: Mapping[tuple[int, int], int]) -> None:
        """Keep the sequences that the plane has used, for the next plane."""
        self.sequences = sequences

    def set_depth(self, burst_ns: int) -> None:
        """The depth of groups' buckets."""
        self.group_burst_ns = burst_ns
        self.isolation, self.is_led = None, True

    def set_brokers(self, count: int) -> None:
        """How many brokers share the quotas."""
        self.live_brokers = count

    @override
    def end_round(self, now: Nanos) -> None:
        """A round ended."""
        super().end_round(now)
        self.leases.end_round(now)

    def ask(self, look: Callable[["LocalGate", *_Args], _Result], *args: *_Args) -> _Result:
        """What a look sees here."""
        return look(self, *args)

    # Between two planes.

    def forget_slots(self) -> bool:
        """Forget what the plane that has gone gave; call it again if something is left."""
        self.is_led = False
        self.asked.clear()
        self.news.clear()
        has_slots = self.forget_some_slots(FORGOTTEN_A_CALL)
        return self.unblock(FORGOTTEN_A_CALL) or has_slots

    def groups_in_use(self, begin: int, count: int, now: Nanos) -> list[tuple[GroupKey, Rates]]:
        """`count` groups from `begin` on and their shares in force; all are to be asked for before any is given a slot id or dropped."""
        if not begin:
            # They are among those in use.
            self.asked.clear()
        found = self.some_groups(begin, count, now)
        return [(state.key, state.share) for state in found]

    def _noted(self, group: Group, kind: Kind, _now: Nanos) -> tuple[int, Rates]:
        """No slot id and an equal part, for a group that the plane is yet to hear of."""
        self.asked.append(GroupKey(group.name, kind))
        self.news.on_news()
        return NO_SLOT, self.alone(group.rates(kind))
