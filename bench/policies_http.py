"""Requests beside a reload: `POST /v1/acquire` while a groups file of 100,000 namespaces comes into force.

    python bench/policies_http.py [--json] [--namespaces 100000] [--seconds 10]

The whole daemon (`rgd serve`, `policies.source: file`, on the embedded broker) answers for 5,000
namespaces, each asked for once a second. Then its file is replaced, five times: every namespace is
attached to another one of 1,000 groups with another quota. Latency is from a request's sending to its
answer, over loopback, first in peace (`calm_`), then from the first replacement until the last is in
force (`reload_`). `..._s` is the time from writing the file until `GET /v1/groups/...` shows it.
"""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Final

from bench.harness import Figures, run
from bench.rounds_http import SETTLE_S, Callers, daemon
from rgd.adapters.exchange.embedded import EmbeddedBroker

GROUPS: Final = 1_000
ASKED: Final = 5_000
RELOADS: Final = 5
#: Longest time until a file is in force.
RELOAD_S_MAX: Final = 120.0


def write_file(path: Path, namespaces: int, turn: int) -> Path:
    """Write the groups file of a turn beside the one that is in force."""
    lines = ["groups:"]
    lines += [
        f"  group-{place:04}: {{publish: {{messages: {1_000_000 + turn}}}}}"
        for place in range(GROUPS)
    ]
    lines += ["attach:", "  namespaces:"]
    lines += [
        f"    tenant-{place // 100:04}/namespace-{place:06}: group-{(place + turn) % GROUPS:04}"
        for place in range(namespaces)
    ]
    fresh = path.with_suffix(f".{turn}")
    fresh.write_text("\n".join(lines) + "\n")
    return fresh


async def in_force(port: int, turn: int) -> None:
    """Wait until the file of a turn is in force."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/groups/group-0000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        _, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        if json.loads(body)["publish"]["quota"]["messages"] == 1_000_000 + turn:
            return
        await asyncio.sleep(0.05)


def _question(namespace: str) -> bytes:
    tenant, _, local = namespace.partition("/")
    return b'{"tenant":"%s","namespace":"%s","topic":"eu"}' % (tenant.encode(), local.encode())


async def compare(options: argparse.Namespace) -> dict[str, float]:
    """All figures."""
    names = [
        f"tenant-{place // 100:04}/namespace-{place:06}"
        for place in range(0, options.namespaces, max(1, options.namespaces // ASKED))
    ]
    figures: dict[str, float] = {"namespaces": options.namespaces}
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "groups.yaml"
        # All at once: while latency is measured, this process does nothing else.
        files = [write_file(file, options.namespaces, turn) for turn in range(RELOADS + 1)]
        files[0].replace(file)
        broker = EmbeddedBroker(folder / "broker")
        url = await broker.ensure()
        begun = loop.time()
        try:
            with daemon(folder, url, file) as (port, _):
                figures["start_s"] = round(loop.time() - begun, 2)
                callers = Callers(port, [_question(name) for name in names])
                await asyncio.sleep(SETTLE_S)
                callers.begin()
                await asyncio.sleep(options.seconds)
                figures |= callers.figures("calm")
                callers.begin()
                longest_s = 0.0
                for turn in range(1, RELOADS + 1):
                    # As a whole: a reader never sees half of it.
                    files[turn].replace(file)
                    begun = loop.time()
                    async with asyncio.timeout(RELOAD_S_MAX):
                        await in_force(port, turn)
                    longest_s = max(longest_s, loop.time() - begun)
                # What the last one left to be worked off.
                await asyncio.sleep(1)
                figures |= callers.figures("reload")
                figures["longest_reload_s"] = round(longest_s, 2)
                callers.end()
        finally:
            await broker.stop()
    return figures


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    return asyncio.run(compare(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--namespaces", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of the calm")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
