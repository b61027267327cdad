"""The gate as the plane has it: each call of the port is a message of the link.

What is asked for waits one turn of the gate's loop; what is told waits for nothing. What the gate notes stands in
`RemoteNews`, as it does in the gate's own news where both are one process.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar, TypeVarTuple

from rgd.app.planes.plane_end import PlaneEnd
from rgd.core.backlog.quota import Blocked
from rgd.core.counts.page import OpenedWindow, Page, Ungoverned, joined
from rgd.core.gate.local import LocalGate
from rgd.core.gate.policy_parts import parts_between
from rgd.core.policies.model import GroupKey, OnUnknown, Rate, Rates
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, Changes, PolicySnapshot
from rgd.core.units import Nanos

#: Groups of one message: requests wait for a third of a millisecond until the gate has done it.
GROUPS_A_MESSAGE: Final = 64

_Args = TypeVarTuple("_Args")
_Result = TypeVar("_Result")


def parted(groups: Iterable[_Result]) -> Iterator[list[_Result]]:
    """What is said of some groups, in parts of one message each."""
    left = iter(groups)
    while part := [*islice(left, GROUPS_A_MESSAGE)]:
        yield part


class RemoteNews:
    """What the gate has for the plane (`rgd.core.gate.port.News`)."""

    def __init__(self, link: PlaneEnd) -> None:
        self._link = link
        self.has_touched = False
        self.unreported: list[int] = []
        self.backlogged: set[int] = set()
        self.dropped = link.dropped
        self.on_news: Callable[[], None] = lambda: None

    def noted(self, unreported: Iterable[int], backlogged: Iterable[int]) -> None:
        """Take a note of the gate; whoever sends one has touched rows, or these."""
        self.has_touched = True
        self.unreported += unreported
        self.backlogged.update(backlogged)
        self.on_news()

    def touched_count(self) -> int:
        """How many rows `collect` would give."""
        return self._link.ask(_touched_count)

    def collect(self, count: int) -> Page:
        """The first rows that were touched, at most `count`; they are touched no more."""
        counts = map(len, parted(range(count)))
        pages, has_touched = zip(*self._link.ask_each(_collect, counts), strict=True)
        self.has_touched = has_touched[-1]
        return joined(pages)

    def changed(self, slots: Iterable[int]) -> Page:
        """Those of these rows that changed since they were in a page."""
        return joined(self._link.ask_each(_changed, parted(slots)))

    def refused(self, slots: Iterable[int]) -> bytes:
        """[slots, messages or bytes, levels] work refused by each level since the start, int64."""
        return b"".join(self._link.ask_each(_refused, parted(slots)))

    def open_windows(self, rows: Iterable[OpenedWindow]) -> None:
        """Begin what belongs to a window again."""
        for part in parted(rows):
            self._link.tell(_open_windows, part)

    def report(self, rows: Iterable[tuple[int, bool]]) -> None:
        """Note whether the peers know of the demand for some groups."""
        for part in parted(rows):
            self._link.tell(_report, part)


class RemoteGate:
    """As `rgd.core.gate.port.Gate`, over a link."""

    #: The gate's process does its own housekeeping.
    is_behind = False

    def __init__(self, link: PlaneEnd) -> None:
        self._link = link
        self.news = RemoteNews(link)
        self.snapshot = EMPTY_SNAPSHOT
        self._is_known = False

    def work(self, now: Nanos) -> None:
        """Nothing is left to do here."""

    def set_policies(
        self, snapshot: PolicySnapshot, now: Nanos, changes: Changes | None = None
    ) -> None:
        """Put a policy snapshot in force; returns when it is."""
        # If it fails, what the gate has is not known.
        before, self._is_known = (self.snapshot if self._is_known else None), False
        for part in parts_between(before, snapshot):
            self._link.tell_host("take_policies", part)
        self._link.ask_host("put_policies", snapshot.limits.broker, now, changes)
        self.snapshot, self._is_known = snapshot, True

    def set_unknown(self, answer: OnUnknown | None) -> None:
        """What to answer while no policies are known; None: they are."""
        self._link.tell(LocalGate.set_unknown, answer)

    def set_shares(self, shares: Iterable[tuple[int, Rates]], now: Nanos) -> None:
        """Put shares in force, with the policy and the depth in force."""
        # Numbers are read in a twentieth of the time that rates take.
        numbers = ((slot, share.messages, share.bytes) for slot, share in shares)
        for part in parted(numbers):
            self._link.tell(_set_shares, part, now)

    def give_slot(self, key: GroupKey, slot: int, share: Rates, now: Nanos) -> None:
        """Put a share of a group without a slot id in force; it has that slot id from now on."""
        self._link.tell(LocalGate.give_slot, key, slot, share, now)

    def resume(self, groups: Iterable[tuple[GroupKey, int]]) -> tuple[Page, list[Sequence[int]]]:
        """Give slot ids to groups that keep their share; returns the readings of those that there are, and their demand."""
        return self._link.ask(LocalGate.resume, [*groups])

    def note_sequences(self, sequences: Mapping[tuple[int, int], int]) -> None:
        """Keep the sequences that reports have used, for the next plane."""
        self._link.tell(LocalGate.note_sequences, sequences)

    def drop(self, keys: Iterable[GroupKey]) -> None:
        """Forget groups that no longer exist; `News.dropped` has their slot ids when this returns."""
        self._link.ask_each(LocalGate.drop, parted(keys))

    def set_depth(self, burst_ns: int) -> None:
        """The depth of groups' buckets; those of a group change with its next share."""
        self._link.tell(LocalGate.set_depth, burst_ns)

    def set_brokers(self, count: int) -> None:
        """How many brokers share the quotas, this one included."""
        self._link.tell(LocalGate.set_brokers, count)

    def block(self, topic: str, blocked: Blocked | None) -> None:
        """Hold or refuse publishing to a topic (full name), or end that (None)."""
        self._link.tell(LocalGate.block, topic, blocked)

    def end_round(self, now: Nanos) -> None:
        """A round has ended."""
        self._link.tell(LocalGate.end_round, now)

    def drain_ungoverned(self) -> Ungoverned:
        """Counts of requests decided without a limit since the last call."""
        return self._link.ask(LocalGate.drain_ungoverned)

    def ask(self, look: Callable[[LocalGate, *_Args], _Result], *args: *_Args) -> _Result:
        """What a function of the gate gives."""
        return self._link.ask(look, *args)


# What runs in the gate's process.


def _set_shares(gate: LocalGate, shares: list[tuple[int, Rate, Rate]], now: Nanos) -> None:
    for slot, *rates in shares:
        gate.set_share(slot, Rates(*rates), now)


def _touched_count(gate: LocalGate) -> int:
    return gate.news.touched_count()


def _collect(gate: LocalGate, count: int) -> tuple[Page, bool]:
    page = gate.news.collect(count)
    return page, gate.news.has_touched


def _changed(gate: LocalGate, slots: list[int]) -> Page:
    return gate.news.changed(slots)


def _refused(gate: LocalGate, slots: list[int]) -> bytes:
    return gate.news.refused(slots)


def _open_windows(gate: LocalGate, rows: list[OpenedWindow]) -> None:
    gate.news.open_windows(rows)


def _report(gate: LocalGate, rows: list[tuple[int, bool]]) -> None:
    gate.news.report(rows)
