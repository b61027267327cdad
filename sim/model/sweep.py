"""Runs the model: chunks of groups through all their rounds, over several processes.

Law: a sweep's figures do not depend on how many processes ran it.

`rgd.core.fluid.cluster` is what runs; here is who runs it, and who watches.
"""

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from rgd.core.fluid.cluster import Cluster, Settings
from rgd.core.shares.columns_sums import Ints
from sim.model.tally import Tally, Watch
from sim.model.workload import Chunk, Workload

#: Rows of a chunk: a handful of its arrays fit the second level of a processor's cache.
CHUNK_ROWS: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class Sweep:
    """What to run."""

    workload: Workload
    groups: int
    settings: Settings = field(default_factory=Settings)

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """Number and size of every chunk."""
        most = max(1, CHUNK_ROWS // self.workload.brokers)
        sizes = [min(most, self.groups - first) for first in range(0, self.groups, most)]
        return list(enumerate(sizes))


def run(sweep: Sweep, *, processes: int, on_progress: Callable[[int], None]) -> Tally:
    """Run a sweep.

    Args:
        sweep: what to run.
        processes: how many to use.
        on_progress: told how many groups are done.
    """
    tally = Tally(sweep.workload.rounds)
    work = partial(run_chunk, sweep)
    chunks = sweep.chunks
    with multiprocessing.get_context("spawn").Pool(min(processes, len(chunks))) as pool:
        # In order, so that sums of floats do not depend on who is ready first.
        for part in pool.imap(work, chunks):
            tally.add(part)
            on_progress(tally.groups)
        # Waited for, so that what they cost is counted.
        pool.close()
        pool.join()
    return tally


def run_chunk(sweep: Sweep, chunk: tuple[int, int]) -> Tally:
    """Run one chunk of groups through all rounds."""
    workload = sweep.workload
    number, groups = chunk
    demand = Chunk(workload, number, groups)
    cluster = Cluster(demand.quota[:, None], workload.brokers, sweep.settings)
    watch = Watch(demand.quota, workload.brokers, workload.rounds)
    fair = cluster.share[..., 0]
    for this in demand.rounds():
        if this.is_step:
            mean = this.mean[..., None]
            fair = cluster.shares(mean, mean)[..., 0]
        watch.shares(cluster.share[..., 0], fair)
        tokens = cluster.tokens.sum(axis=(1, 2)).astype(np.int64)
        admitted = round_of(cluster, this.offered)
        part = np.minimum(this.offered, fair)
        watch.round(this.offered, admitted, part=part, tokens=tokens)
    return watch.tally


def round_of(cluster: Cluster, offered: Ints) -> Ints:
    """Let a round of messages pass; [groups, brokers] Milli that were admitted of what was offered."""
    flow = offered[..., None].astype(np.float64)
    admitted = cluster.admit(flow)
    cluster.exchange(flow, admitted)
    return admitted[..., 0].astype(np.int64)
