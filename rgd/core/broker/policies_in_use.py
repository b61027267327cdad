"""The policies of the groups in use that sharing needs, by slot id: quotas and share policies.

When policies change, a group that may have changed is unread, and its share is marked: it is read when its share is
recomputed (`Sharing`).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rgd.core.exchange.columns import POLICIES, Codes, Flags, Ints, policy_code, rates
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.policies.model import UNLIMITED, GroupKey, Rates, SharePolicyName
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.core.shares.columns import NO_RATE

_MAX_MIN: Final = policy_code(SharePolicyName.MAX_MIN)


class PoliciesInUse:
    """Quotas and share policies, by slot id; `Sharing` knows which groups are in use."""

    def __init__(self, default: SharePolicyName, index: GroupIndex) -> None:
        self._default = default
        self._index = index
        self.snapshot: PolicySnapshot = EMPTY_SNAPSHOT
        #: [slots, 2] quotas as they were read, in Milli per second, `NO_RATE` for unlimited.
        self.quotas = np.full((64, 2), NO_RATE, np.int64)
        #: [slots] share policies, as indexes into `POLICIES`.
        self._policy = np.full(64, _MAX_MIN, np.uint8)
        #: [slots] whether the policies are to be read again.
        self.is_unread: Flags = np.zeros(64, np.bool_)
        index.keep(self, {"quotas": NO_RATE, "_policy": _MAX_MIN, "is_unread": False})

    def quota(self, key: GroupKey) -> Rates:
        """The cluster-wide rates of a group; unlimited where there is no such group."""
        group = self.snapshot.groups.get(key.group)
        return UNLIMITED if group is None else group.rates(key.kind)

    def policy(self, key: GroupKey) -> SharePolicyName:
        """The share policy of a group."""
        group = self.snapshot.groups.get(key.group)
        policy = None if group is None else group.policy
        return policy or self._default

    def is_max_min(self, slots: Ints) -> Flags:
        """[slots] whether the share policy is max-min."""
        flags: Flags = self._policy[slots] == _MAX_MIN
        return flags

    def codes(self, slots: Ints) -> Codes:
        """[slots] share policies, as indexes into `POLICIES`."""
        codes: Codes = self._policy[slots]
        return codes

    def others(self, slots: Ints) -> Sequence[SharePolicyName]:
        """[slots] share policies; empty where all are max-min."""
        if self.is_max_min(slots).all():
            return ()
        return [POLICIES[code] for code in self._policy[slots].tolist()]

    def read(self, slots: Ints) -> Flags:
        """Read the policies of groups; returns [slots] whether each group exists."""
        keys = [self._index.keys[slot] for slot in slots.tolist()]
        self.quotas[slots] = rates(map(self.quota, keys))
        self._policy[slots] = [policy_code(self.policy(key)) for key in keys]
        self._index.ignores_admitted[slots] = self.is_max_min(slots)
        # This is last, so a read that raises is repeated.
        self.is_unread[slots] = False
        return np.array([key.group in self.snapshot.groups for key in keys], np.bool_)
