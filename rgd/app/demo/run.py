"""Plays the demo's plan on a cluster, and shows it as it goes.

Law: a phase's clock starts at its event, on the machine's monotonic clock that
the loads count by; a kill counts from the moment the others have noticed
(expiry), a restart from the moment the daemon listens.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rgd.adapters.http.client import DaemonClient, DaemonUnreachable
from rgd.app.demo.cluster import Cluster, DemoFailed
from rgd.app.demo.plan import BROKERS, GROUP, PHASES, Change, Phase
from rgd.app.demo.verdict import PhaseVerdict, judge

#: How often the state is shown.
SHOW_S: Final = 1.0
#: Counts of a round are complete this long after its end.
SETTLED_S: Final = 0.5
#: Longest wait for a killed daemon to be noticed.
EXPIRY_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Line:
    """One group on one broker, now: per second."""

    group: str
    broker: str
    wanted: float
    admitted: float
    #: None: the daemon does not answer.
    share: float | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at one moment."""

    phase: str
    second: int
    quota: float
    lines: tuple[Line, ...]


#: Shows a snapshot, or a verdict as soon as it is known.
Show = Callable[[Snapshot | PhaseVerdict], None]


async def play(folder: Path, show: Show) -> list[PhaseVerdict]:
    """Run the cluster in `folder` through the plan.

    Raises:
        DemoFailed: a process did not do what it should.
        ConfigError: there is no embedded broker for this machine.
    """
    async with Cluster(folder) as cluster:
        await cluster.wait_until_live()
        verdicts = []
        for phase in PHASES:
            verdict = await _play_phase(cluster, phase, show)
            show(verdict)
            verdicts.append(verdict)
        return verdicts


async def _play_phase(cluster: Cluster, phase: Phase, show: Show) -> PhaseVerdict:
    begin_s = await _begin(cluster, phase)
    for second in range(1, phase.rounds + 1):
        await asyncio.sleep(max(0.0, begin_s + second * SHOW_S - time.monotonic()))
        show(await _look(cluster, phase, second))
    await asyncio.sleep(SETTLED_S)
    tallies = {name: load.tally for name, load in zip(BROKERS, cluster.loads, strict=True)}
    return judge(phase.name, phase.quota, tallies, begin_ms=begin_s * 1000, rounds=phase.rounds)


async def _begin(cluster: Cluster, phase: Phase) -> float:
    """Make the phase's event happen; the moment from which it counts."""
    last = cluster.daemons[-1]
    if phase.change is Change.KILL:
        await cluster.loads[-1].stop()
        await last.kill()
        await _wait_until_forgotten(cluster, last.name)
    elif phase.change is Change.RESTART:
        await last.start()
        cluster.loads[-1].start(last.base)
    elif phase.change is Change.QUOTA:
        async with DaemonClient(cluster.daemons[0].base) as client:
            await client.put_group(GROUP, {"publish": {"messages": phase.quota}})
    begin_s = time.monotonic()
    for load, wanted, daemon in zip(cluster.loads, phase.wanted, cluster.daemons, strict=True):
        if daemon is not last or phase.change is not Change.KILL:
            load.wanted_per_s = wanted
    return begin_s


async def _wait_until_forgotten(cluster: Cluster, name: str) -> None:
    try:
        async with asyncio.timeout(EXPIRY_TIMEOUT_S):
            for daemon in cluster.daemons[:-1]:
                async with DaemonClient(daemon.base) as client:
                    while name in {one["broker"] for one in await client.brokers()}:  # noqa: ASYNC110 - other processes notice
                        await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise DemoFailed(
            f"{name} was killed and {EXPIRY_TIMEOUT_S:g} s later still counts"
        ) from error


async def _look(cluster: Cluster, phase: Phase, second: int) -> Snapshot:
    now_ms = time.monotonic() * 1000
    lines = []
    for daemon, load in zip(cluster.daemons, cluster.loads, strict=True):
        # The newest may still wait for their answers.
        wanted, admitted = load.tally.rates(now_ms - 1300, now_ms - 300)
        lines.append(Line(GROUP, daemon.name, wanted, admitted, await _share_of(daemon.base)))
    return Snapshot(phase.name, second, phase.quota, tuple(lines))


async def _share_of(base: str) -> float | None:
    try:
        async with DaemonClient(base) as client:
            view: dict[str, Any] = await client.group(GROUP)
    except DaemonUnreachable:
        return None
    share = view["publish"]["share"]["messages"]
    return None if share is None else float(share)
