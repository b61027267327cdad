"""What three daemons under load do while their Apache Pulsar is killed and started again, many times.

    python bench/pulsar_kills.py [--json] [--kills 20] [--secured]

Each kill is a SIGKILL; Pulsar is away until every daemon holds its share as cut off, and meanwhile the demand moves
from one daemon to another (tests/support/killed_pulsar.py). Rounds are counted from the first moment at which a plain client can
publish and read. By default three kills, some 30 s each. `--secured`: with tokens, authorisation and TLS.
`docs/performance.md` has the figures of 20.
"""

import argparse
import asyncio
import logging
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from bench.harness import Figures, run
from rgd.adapters.exchange.pulsar_client import PulsarSettings
from tests.support.killed_pulsar import Held, cluster_on, until_served
from tests.support.pulsar_operator import ensure_namespace
from tests.support.pulsar_standalone import PulsarStandalone
from tests.support.secured_pulsar import ADMIN, SecuredPulsar

NAMESPACE: Final = "public/rgd"
#: Issue 14: daemons agree so many rounds after Pulsar's return.
ROUNDS_GOAL: Final = 3


async def measured(options: argparse.Namespace) -> Figures:
    """Kill it again and again."""
    figures: dict[str, float] = {"kills": options.kills}
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings: dict[str, str] = {}
        plain = PulsarSettings()
        if options.secured:
            secured = await asyncio.to_thread(SecuredPulsar, folder / "pulsar")
            stack.callback(secured.close)
            pulsar, url = secured.pulsar, secured.tls_url
            await ensure_namespace(pulsar.admin_url, NAMESPACE, secured.token(ADMIN))
            settings = secured.daemon_settings("rgd", NAMESPACE, folder / "token")
            plain = PulsarSettings(token_file=folder / "token", tls_trust_certs=secured.cert)
        else:
            pulsar = await asyncio.to_thread(stack.enter_context, PulsarStandalone())
            url = pulsar.service_url
            await ensure_namespace(pulsar.admin_url, NAMESPACE)
        cluster = await stack.enter_async_context(cluster_on(url, folder / "daemons", settings))

        async def restart() -> None:
            await pulsar.restart_registered()
            await until_served(url, plain)

        outages, held = [], [cluster.held()]
        for number in range(options.kills):
            outages.append(await cluster.outage(lambda: _kill(pulsar), restart))
            held.append(cluster.held())
            figures[f"rounds_{number:02}"] = round(outages[-1].rounds_until_fair, 2)
    rounds = sorted(outage.rounds_until_fair for outage in outages)
    figures["rounds_longest"] = round(rounds[-1], 2)
    figures["rounds_median"] = round(rounds[len(rounds) // 2], 2)
    figures["within_3_rounds"] = sum(one <= ROUNDS_GOAL for one in rounds)
    figures["share_moved_percent"] = round(100 * max(outage.moved for outage in outages), 2)
    return figures | _of_processes(held)


async def _kill(pulsar: PulsarStandalone) -> None:
    await asyncio.to_thread(pulsar.kill)


def _of_processes(held: list[Held]) -> dict[str, float]:
    """What all daemons hold: before, after the first kill, half way and in the end."""
    figures: dict[str, float] = {}
    moments = {"before": 0, "after_first": 1, "half_way": len(held) // 2, "after": -1}
    for name, now in ((name, held[at]) for name, at in moments.items()):
        figures[f"descriptors_{name}"] = now.descriptors
        figures[f"threads_{name}"] = now.threads
        figures[f"memory_mb_{name}"] = now.memory_mb
    return figures


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    logging.getLogger("rgd.pulsar").setLevel(logging.CRITICAL)
    return asyncio.run(measured(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--secured", action="store_true", help="tokens, authorisation and TLS")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
