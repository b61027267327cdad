"""What the plane calls of the gate, and nothing else.

Laws:

- Calls take effect in their order. Those that return something may wait for the gate; the others only tell it something.
- The gate never waits for the plane. What it has to say is in `News`: `dropped` is complete as of the last call that
  returned something, the rest as of a moment ago; it loses nothing.
- A call for some groups may cross in parts, and requests are served between them: a row may be in two parts of a page.
- A part is a small piece of the gate's work (64 rows), because requests wait until it ends.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar, TypeVarTuple

from rgd.core.backlog.quota import Blocked
from rgd.core.counts.page import Page, Pages, Ungoverned
from rgd.core.gate.local import LocalGate
from rgd.core.policies.model import GroupKey, OnUnknown, Rates
from rgd.core.policies.snapshot import Changes, PolicySnapshot
from rgd.core.units import Nanos

_Args = TypeVarTuple("_Args")
_Result = TypeVar("_Result")


class News(Pages, Protocol):
    """What was counted, by slot id (`rgd.core.counts.news.News`)."""

    #: Called when there is something again, so that the plane's next wake is planned.
    on_news: Callable[[], None]
    #: The slot ids of groups that refused work and that no report has shown; of which backlogs refused work that the
    #: usage log does not have; that no longer exist. The plane empties them.
    unreported: list[int]
    backlogged: set[int]
    dropped: list[int]

    @property
    def has_touched(self) -> bool:
        """Whether `collect` would give rows; it asks nobody."""

    def touched_count(self) -> int:
        """How many rows were touched since they were collected."""

    def collect(self, count: int) -> Page:
        """The first rows that were touched, at most `count`; they are touched no more."""

    def refused(self, slots: Iterable[int]) -> bytes:
        """[slots, messages or bytes, levels] work refused by each level since the start, int64; all must exist."""

    def report(self, rows: Iterable[tuple[int, bool]]) -> None:
        """Note of some groups, by slot id, whether the peers know of the demand."""


class Gate(Protocol):
    """What answers requests with the shares in force."""

    @property
    def news(self) -> News:
        """What was counted."""

    @property
    def snapshot(self) -> PolicySnapshot:
        """The policies that it was given last."""

    @property
    def is_behind(self) -> bool:
        """Whether `work` has something to do."""

    def work(self, now: Nanos) -> None:
        """Do a slice of what a change or a round's end left to do."""

    def set_policies(
        self, snapshot: PolicySnapshot, now: Nanos, changes: Changes | None = None
    ) -> None:
        """Put policies in force; `changes` are those since the ones before."""

    def set_unknown(self, unknown: OnUnknown | None) -> None:
        """How to answer while no policies are known; None: they are known."""

    def set_shares(self, shares: Iterable[tuple[int, Rates]], now: Nanos) -> None:
        """Put shares of groups in force, by slot id, with the policy and the depth in force."""

    def give_slot(self, key: GroupKey, slot: int, share: Rates, now: Nanos) -> None:
        """The same for a group without a slot id, which has this one from now on."""

    def resume(self, groups: Iterable[tuple[GroupKey, int]]) -> tuple[Page, list[Sequence[int]]]:
        """Give slot ids to groups that keep their share; returns the readings of those that there are, and their demand.

        Demand is in whole units of messages and bytes since the start, as of the last window that a plane opened.
        """

    def note_sequences(self, sequences: Mapping[tuple[int, int], int]) -> None:
        """Keep the sequences that reports have used, by number and layout of their shard, for the next plane."""

    def drop(self, keys: Iterable[GroupKey]) -> None:
        """Forget groups that no longer exist; `News.dropped` has their slot ids when this returns."""

    def set_depth(self, burst_ns: int) -> None:
        """The depth of groups' buckets in ns of their rates; those of a group change with its next share."""

    def set_brokers(self, count: int) -> None:
        """How many brokers share the quotas, this one included."""

    def block(self, topic: str, blocked: Blocked | None) -> None:
        """Hold or refuse publishing to a topic (full name), or end that (None)."""

    def end_round(self, now: Nanos) -> None:
        """A round ended: topics are weighed, expired leases go."""

    def drain_ungoverned(self) -> Ungoverned:
        """Counts of requests decided without a limit since the last call."""

    def ask(self, look: Callable[[LocalGate, *_Args], _Result], *args: *_Args) -> _Result:
        """What a look (`rgd.core.gate.looks`) sees where the buckets are.

        Args:
            look: a function of a module; what it takes and returns is plain data.
            args: what it takes besides the gate.
        """
