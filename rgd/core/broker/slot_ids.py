"""Frees the slot ids of groups that are no longer used, and alerts when there are too few.

Law: a slot id is freed only while no column uses it: no broker has a row of the group, the group is
not in use here, nothing of it is advertised, and no round is ending (a round keeps slot ids between
its pieces). So the names that peers make up leave no trace once their rows are gone (idle, taken
back, or with the peer).

All slot ids are checked once a round. When policies change, names are looked up again,
because groups that have policies now no longer count among the unknown ones.
"""

from collections.abc import Collection, Mapping

import numpy as np

from rgd.core.broker.effects import Alarm, AlarmCode, Effect
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.sharing import Sharing
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import Group, GroupKey
from rgd.core.units import Kind, Nanos


class SlotIds:
    """The slot ids of one broker."""

    def __init__(
        self, index: GroupIndex, usage: UsageMap, sharing: Sharing, rounds: Rounds
    ) -> None:
        self._index = index
        self._bounds = index.bounds
        self._usage = usage
        self._sharing = sharing
        self._rounds = rounds
        self._is_short = False
        index.set_known(sharing.snapshot.groups)

    def set_groups(self, groups: Mapping[str, Group], changed: Collection[str] | None) -> None:
        """Take over the groups of new policies, and look up the names that changed (None: all)."""
        self._index.set_known(groups)
        if changed is None:
            self._index.judge(np.arange(len(self._index)))
            return
        keys = [GroupKey(name, kind) for name in changed for kind in Kind]
        found = [slot for key in keys if (slot := self._index.find(key)) is not None]
        self._index.judge(np.array(found, np.int64))

    def end_round(self, now: Nanos) -> list[Effect]:
        """Free unused slot ids, and try again to give them to groups without one.

        Returns:
            An alarm where slot ids have become too few.
        """
        self._free_unused()
        self._sharing.retry(now)
        was_short, self._is_short = self._is_short, self._sharing.slotless > 0
        return [Alarm(AlarmCode.GROUPS_WITHOUT_SLOT)] if self._is_short and not was_short else []

    def _free_unused(self) -> None:
        """Free unused slot ids, at most so many."""
        slots = np.arange(len(self._index))
        used = self._sharing.is_in_use(slots) | self._rounds.suppression.is_advertised(slots)
        used |= self._usage.counts(slots) > 0
        unused = np.flatnonzero(self._index.is_given[: len(slots)] & ~used)
        unused = unused[: self._bounds.freed_a_round]
        self._index.free(unused)
        self._sharing.forget(unused)
        self._rounds.forget(unused)
