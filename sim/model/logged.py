"""The usage logs that the daemons of a sweep would have written: a month of a hundred in minutes.

Law: every number is the model's, in whole units; totals are the sums of the rounds, indexes are continuous,
segments roll as a daemon's do and begin with the policies. Rounds may be longer than a daemon's, because a
month of seconds has 259,200,000 of them for a hundred daemons.
"""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import REFUSED_BY, ShareColumns, UsageColumns
from rgd.core.exchange.messages import PoliciesInForce, RoundRecord, Sender
from rgd.core.fluid.cluster import Cluster, Settings
from rgd.core.policies.model import Attachments, Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI, NS_PER_S
from sim.model.sweep import round_of
from sim.model.workload import Chunk, Workload
from sim.usage_log import EPOCH_MS, SegmentWriter

Ints = NDArray[np.int64]

_OWN: Final = REFUSED_BY.index("resource_group")
_POLICIES_HASH: Final = 1


def write_logs(
    workload: Workload, groups: int, settings: Settings, *, folder: Path, round_s: int
) -> int:
    """Write a log folder of each broker into `folder`; how many entries.

    Raises:
        OSError: a file cannot be written.
        FileExistsError: there is a log already.
    """
    chunk = Chunk(workload, 0, groups)
    cluster = Cluster(chunk.quota[:, None], workload.brokers, settings)
    snapshot = _snapshot_of(chunk.quota)
    brokers = [_Broker(folder, place, snapshot, chunk.quota) for place in range(workload.brokers)]
    for number, demand in enumerate(chunk.rounds(), 1):
        share = cluster.share[..., 0]
        admitted = round_of(cluster, demand.offered)
        for broker in brokers:
            broker.log(number, demand.offered, admitted, share, round_s)
    for broker in brokers:
        broker.writer.close()
    return sum(broker.writer.index for broker in brokers)


def _snapshot_of(quota: Ints) -> PolicySnapshot:
    """Every group with its quota, attached to a tenant of its own."""
    names = [_name(place) for place in range(len(quota))]
    return PolicySnapshot(
        {
            name: Group(name, Limit(publish=Rates(messages=rate)))
            for name, rate in zip(names, quota.tolist(), strict=True)
        },
        Attachments(tenants={f"tenant-{name}": name for name in names}),
    )


def _name(place: int) -> str:
    return f"group-{place:05}"


class _Broker:
    """One broker's log, and what it has counted."""

    def __init__(self, folder: Path, place: int, snapshot: PolicySnapshot, quota: Ints) -> None:
        name = f"broker-{place:03}"
        self.writer = SegmentWriter(folder / name, name)
        self._place = place
        self._sender = Sender(name, place + 1)
        self._snapshot = snapshot
        self._quota = np.stack([quota, np.full(len(quota), NO_RATE)], axis=1)
        self._names = tuple(snapshot.groups)
        self._admitted = np.zeros((len(quota), 2), np.int64)
        self._wanted = np.zeros((len(quota), 2), np.int64)

    def log(self, number: int, offered: Ints, admitted: Ints, share: Ints, round_s: int) -> None:
        """Log a round, [groups, brokers] Milli per second."""
        told_ms = EPOCH_MS + number * round_s * 1000
        if number == 1:
            policies = PoliciesInForce(self._sender, self._snapshot, _POLICIES_HASH)
            self.writer.append(policies, told_ms)
        asked = np.flatnonzero(offered[:, self._place])
        counted, wanted = (
            self._units(rates[asked, self._place], round_s) for rates in (admitted, offered)
        )
        self._admitted[asked] += counted
        self._wanted[asked] += wanted
        refused_by = np.zeros((len(asked), len(REFUSED_BY), 2), np.int64)
        refused_by[:, _OWN] = wanted - counted
        usage = UsageColumns(
            groups=tuple(self._names[place] for place in asked.tolist()),
            kinds=np.zeros(len(asked), np.uint8),
            topics=np.ones(len(asked), np.int64),
            admitted=_rates(counted, round_s),
            wanted=_rates(wanted, round_s),
        )
        limits = np.stack([share[asked, self._place], np.full(len(asked), NO_RATE)], axis=1)
        rows = ShareColumns(
            usage=usage,
            share=limits,
            quota=self._quota[asked],
            policies=np.zeros(len(asked), np.uint8),
            refused=wanted - counted,
            sent=np.ones(len(asked), np.bool_),
            admitted_total=self._admitted[asked],
            wanted_total=self._wanted[asked],
            refused_by=refused_by,
        )
        record = RoundRecord(
            self._sender,
            number,
            round_s * NS_PER_S,
            rows,
            policies_hash=_POLICIES_HASH,
            ended_ns=number * round_s * NS_PER_S,
        )
        self.writer.append(record, told_ms)

    @staticmethod
    def _units(rates: Ints, round_s: int) -> Ints:
        """[groups, 2] whole messages of a round, and no bytes."""
        units = rates * round_s // MILLI
        return np.stack([units, np.zeros_like(units)], axis=1)


def _rates(counts: Ints, round_s: int) -> Ints:
    return counts * MILLI // round_s
