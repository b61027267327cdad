"""What callers get while three daemons are restarted one by one, as the DaemonSet of k8s/base does it.

    python bench/rollout.py [--json] [--pre-stop-s 5]

Each daemon has callers of its own node, who want more than their part all the time and reach it by one address, as the
Service leads them: until the pod is told to stop, and again once its readiness probe succeeded. One restart is: preStop,
SIGTERM, the exit, a start, probes in the manifest's period; the next begins when it is ready (`maxUnavailable: 1`). Waits and
periods are those of k8s/base/daemonset.yaml. What is not here: the time in which Kubernetes makes a pod, some 1 to 3 s with the
image on the node. Admitted is counted by the load.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bench.harness import Figures, run
from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.cluster import Daemon
from rgd.app.demo.load import Load
from rgd.app.demo.plan import BROKERS, GROUP, NAMESPACE, QUOTA
from rgd.app.demo.verdict import Tally

MANIFEST: Final = Path(__file__).parents[1] / "k8s" / "base" / "daemonset.yaml"
#: What each daemon's callers want, a second: with one daemon away the other two still want more than the quota.
WANTED: Final = QUOTA * 0.75
#: Before the first restart and after the last one.
SETTLE_S: Final = 5.0
WINDOW_MS: Final = 5000
STEP_MS: Final = 100
LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Order:
    """How the manifest has pods replaced, in seconds."""

    pre_stop_s: float
    grace_s: float
    probe_s: float

    @classmethod
    def of_manifest(cls) -> "Order":
        """The DaemonSet's, which replaces one pod at a time."""
        spec: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())["spec"]
        assert spec["updateStrategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
        pod = spec["template"]["spec"]
        (container,) = pod["containers"]
        return cls(
            pre_stop_s=float(container["lifecycle"]["preStop"]["exec"]["command"][1]),
            grace_s=pod["terminationGracePeriodSeconds"],
            probe_s=container["readinessProbe"]["periodSeconds"],
        )


class Node:
    """A daemon, and an address of its own that leads to it while it is ready."""

    def __init__(self, name: str, folder: Path, exchange: str, environ: dict[str, str]) -> None:
        self.address = folder / f"{name}.address"
        self._socket = folder / f"{name}.sock"
        environ = environ | {"RGD_HTTP__UNIX_SOCKET": str(self._socket)}
        self.daemon = Daemon(name, folder, exchange, environ)

    async def start(self, probe_s: float = LOOK_S) -> None:
        """Start it; callers come once a probe succeeded."""
        await self.daemon.start()
        async with DaemonClient(self.daemon.base) as client:
            while not await client.is_ready():  # noqa: ASYNC110 - another process gets ready
                await asyncio.sleep(probe_s)
        self.address.symlink_to(self._socket)

    async def replace(self, order: Order) -> tuple[float, float, float]:
        """Stop it and start it again; moments of SIGTERM, of the exit and of the first caller (s)."""
        await asyncio.sleep(order.pre_stop_s)
        told_s = time.monotonic()
        self.address.unlink()
        async with asyncio.timeout(order.grace_s - order.pre_stop_s):
            code = await self.daemon.stop()
        assert code == 0, f"{self.daemon.name} ended with {code}"
        ended_s = time.monotonic()
        await self.start(order.probe_s)
        return told_s, ended_s, time.monotonic()


async def roll(folder: Path, order: Order, environ: dict[str, str]) -> Figures:
    """Restart three daemons under load, one after the other; again until the machine ran the loads in half of the windows.

    Args:
        folder: takes logs and sockets; its path is short, because a socket's may not be long.
        order: how pods are replaced.
        environ: further settings of the daemons.
    """
    (folder / "groups.yaml").write_text(
        f"groups: {{{GROUP}: {{publish: {{messages: {QUOTA:g}}}}}}}\n"
        f"attach: {{namespaces: {{{'/'.join(NAMESPACE)}: {GROUP}}}}}\n"
    )
    environ = environ | {
        "RGD_EXCHANGE__EXPECTED_BROKERS": str(len(BROKERS)),
        "RGD_POLICIES__SOURCE": "file",
    }
    async with AsyncExitStack() as stack:
        embedded = EmbeddedBroker(folder / "exchange")
        url = await embedded.ensure()
        stack.push_async_callback(embedded.stop)
        nodes = [Node(name, folder, url, environ) for name in BROKERS]
        for node in nodes:
            stack.push_async_callback(node.daemon.stop)
        await asyncio.gather(*(node.start() for node in nodes))
        loads = [Load(seed) for seed in range(len(BROKERS))]
        for node, load in zip(nodes, loads, strict=True):
            stack.push_async_callback(load.stop)
            load.start(f"unix://{node.address}")
            load.wanted_per_s = WANTED
        while True:
            await asyncio.sleep(SETTLE_S)
            begun_ms = time.monotonic() * 1000
            moments = [await node.replace(order) for node in nodes]
            await asyncio.sleep(SETTLE_S)
            if (figures := _figures([load.tally for load in loads], moments, begun_ms)) is not None:
                return figures


def _figures(
    tallies: Sequence[Tally], moments: Sequence[tuple[float, float, float]], at_ms: float
) -> Figures | None:
    """What was counted since then; None where the machine ran the loads too little to tell."""
    part, end_ms = QUOTA / len(BROKERS), time.monotonic() * 1000
    sums, others = [], []
    while at_ms + WINDOW_MS <= end_ms:
        window = at_ms, at_ms + WINDOW_MS
        rates = [tally.rates(*window)[1] for tally in tallies]
        # A load that the machine did not run asked for less: that says nothing about the daemons.
        was_late = any(tally.was_late(*window) for tally in tallies)
        sums.append((sum(rates) / QUOTA, was_late))
        others += [
            rate / part
            for rate, (told_s, _, back_s) in zip(rates, moments, strict=True)
            if not was_late and (window[1] <= told_s * 1000 or window[0] >= (back_s + 1) * 1000)
        ]
        at_ms += STEP_MS
    judged = [rate for rate, was_late in sums if not was_late]
    if len(judged) < len(sums) / 2:
        return None
    return {
        "restarts": len(moments),
        "stop_s": round(max(ended - told for told, ended, _ in moments), 2),
        "start_s": round(max(back - ended for _, ended, back in moments), 2),
        "without_s": round(max(back - told for told, _, back in moments), 2),
        "admitted_5s_max": round(max(judged), 3),
        "admitted_5s_min": round(min(judged), 3),
        "others_5s_min": round(min(others), 3),
        "windows_unjudged": len(sums) - len(judged),
    }


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    order = Order.of_manifest()
    if options.pre_stop_s is not None:
        order = Order(options.pre_stop_s, order.grace_s, order.probe_s)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(roll(Path(folder), order, {}))
    return {**figures, "load_1m": round(os.getloadavg()[0], 1)}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--pre-stop-s", type=float, help="preStop's wait; default: the manifest's")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
