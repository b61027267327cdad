"""Frees the slots of groups that nobody uses any more, and says when there are too few.

Law: a slot is freed only while no column holds anything in it: no broker has a row there, the group is
not in use here, the peers were told nothing of it, and no round is ending (which keeps slots between its
slices). So whatever names peers invent, once their rows are gone (idle, taken back, or with the peer)
their slots are as if they had never been given.

It looks at all slots once a round, a slice at a time, and again at the names of all when policies
change: who has policies now does not count among the unknown any more.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from rgd.core.broker.effects import Alarm, AlarmCode, Effect
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.jobs import Job
from rgd.core.policies.model import Group
from rgd.core.policies.table import changed_keys
from rgd.core.units import Kind, Nanos

#: Slots that are looked at in one go, freed in one go, and whose names are judged in one go: each well
#: under 2 ms of one core.
SLICE_SLOTS: Final = 131_072
FREED_MAX: Final = 1_024
JUDGED_MAX: Final = 2_048

#: Most groups with other policies that are judged at once.
CHANGES_MAX: Final = 32


class Slots:
    """Looks after the slots of one broker."""

    def __init__(
        self, index: GroupIndex, usage: UsageMap, sharing: Sharing, rounds: Rounds
    ) -> None:
        self._index = index
        self._usage = usage
        self._sharing = sharing
        self._rounds = rounds
        self._free = Job(self._free_unused)
        self._judge = Job(self._judge_all)
        self._is_short = False
        index.set_known(sharing.snapshot.groups)

    @property
    def is_behind(self) -> bool:
        """Whether `work` has something to do now."""
        is_pending = self._free.is_pending or self._judge.is_pending
        return is_pending and not self._rounds.is_ending

    def set_groups(self, before: Mapping[str, Group], after: Mapping[str, Group]) -> None:
        """Other groups have policies now."""
        self._index.set_known(after)
        changed = changed_keys(before, after, CHANGES_MAX)
        if changed is None:
            self._judge.begin()
            return
        keys = [GroupKey(name, kind) for name in changed for kind in Kind]
        found = [slot for key in keys if (slot := self._index.find(key)) is not None]
        self._index.judge(np.array(found, np.int64))

    def end_round(self, now: Nanos) -> list[Effect]:
        """A round has ended: try again where slots were too few, and begin to look for unused ones."""
        self._free.begin()
        self.work(now)
        self._sharing.retry(now)
        was_short, self._is_short = self._is_short, self._sharing.slotless > 0
        return [Alarm(AlarmCode.GROUPS_WITHOUT_SLOT)] if self._is_short and not was_short else []

    def work(self, now: Nanos) -> None:
        """Look at a slice of the slots, or judge a slice of the names."""
        del now  # as every part's work is called
        if self._rounds.is_ending:
            return
        (self._judge if self._judge.is_pending else self._free).step()

    def _judge_all(self) -> Iterator[None]:
        """Look again which names have policies."""
        for begin in range(0, len(self._index), JUDGED_MAX):
            if begin:
                yield
            self._index.judge(np.arange(begin, min(begin + JUDGED_MAX, len(self._index))))

    def _free_unused(self) -> Iterator[None]:
        """Free the slots that nobody uses."""
        begin = self._free_from(0)
        while begin < len(self._index):
            yield
            begin = self._free_from(begin)

    def _free_from(self, begin: int) -> int:
        """Free unused slots of a slice; where the next one begins."""
        end = min(begin + SLICE_SLOTS, len(self._index))
        unused = self._index.is_given[begin:end] & self._usage.is_unused(begin, end)
        unused &= self._sharing.is_unused(begin, end) & self._rounds.is_unused(begin, end)
        slots = begin + np.flatnonzero(unused)
        if len(slots) > FREED_MAX:
            slots = slots[:FREED_MAX]
            end = int(slots[-1]) + 1
        if len(slots):
            self._index.free(slots)
            self._sharing.forget(slots)
            self._rounds.forget(slots)
        return end
