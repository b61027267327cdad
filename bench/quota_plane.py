"""How many questions one core answers, beside nginx answering a constant: single and in arrays.

    python bench/quota_plane.py [--json] [--seconds 3] [--passes 3]

The daemon (`rgd serve` on the embedded broker, with its rounds, usage log, file policies, metrics, and a token that
each request shows) has one core to itself, wrk and the broker the other, with `CONNECTIONS` connections. nginx has the daemon's core when it is its turn. What is compared is measured by turns in one run, and
the best pass counts: other work on the machine only ever takes away. Bodies differ in topic and bytes, so that
nothing is answered because the same bytes were asked before. Leases are measured through `rgd.client`, which then
has the load's core. Needs wrk and nginx (`.ci/install-components`).
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import psutil

from bench.client import leased_figures
from bench.harness import Figures, run
from rgd.adapters.exchange.embedded import EmbeddedBroker

ROOT: Final = Path(__file__).resolve().parents[1]

CONNECTIONS: Final = 32
TOPICS: Final = 50
GROUPS: Final = 5_000
READY_TIMEOUT_S: Final = 30
#: For the first rounds, in which names are new.
WARM_S: Final = 1.0

TOKEN: Final = "a-token-of-the-benchmark"  # noqa: S105 -- of a daemon that lives for this run
TOKENS_FILE: Final = f"- {{name: bench, token: {TOKEN}, scopes: [query, read]}}\n"

CORES: Final = sorted(os.sched_getaffinity(0))
SERVER_CORES: Final = frozenset(CORES[:1])
LOAD_CORES: Final = frozenset(CORES[1:] or CORES)

NGINX: Final = """\
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 '{{"granted":true}}'; }} }}
}}
"""

#: wrk sends the bodies of a file in turn, one a line.
SCRIPT: Final = """\
local requests, at = {{}}, 0
init = function()
  local headers = {{["Content-Type"] = "application/json", ["Authorization"] = "Bearer {token}"}}
  for body in io.lines("{bodies}") do
    requests[#requests + 1] = wrk.format("POST", "/v1/acquire", headers, body)
  end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
"""

#: The name of the case that is no load of wrk: questions answered from leases, by `rgd.client`.
LEASED: Final = "leased"

Item = dict[str, object]


class Case(NamedTuple):
    """One measurement."""

    #: `nginx`, `lane`, or `groups` (the lane with many groups in their rounds).
    server: str
    #: Questions in a body; 0: one that is no array.
    items: int
    #: What the questions are about.
    tenant: str


CASES: Final = {
    "nginx": Case("nginx", 0, "one"),
    "single": Case("lane", 0, "one"),
    "chain_single": Case("lane", 0, "full"),
    "array_100": Case("lane", 100, "one"),
    "array_1000": Case("lane", 1000, "one"),
    "chain_array_100": Case("lane", 100, "full"),
    "chain_array_1000": Case("lane", 1000, "full"),
    "groups_single": Case("groups", 0, ""),
}


def policies(groups: int) -> str:
    """The groups file: one limit, and a chain of three groups in both dimensions; or many groups."""
    ample = "{publish: {messages: 1000000000, bytes: 1000000000000}}"
    lines = ["groups:", "  gold: {publish: {messages: 1000000000}}", f"  tenant: {ample}"]
    lines += [f"  namespace: {ample}"]
    lines += [f"  topic-{number}: {ample}" for number in range(TOPICS)]
    lines += [f"  g{number}: {ample}" for number in range(groups)]
    lines += ["attach:", "  tenants: {full: tenant}"]
    namespaces = "one/orders: gold, acme/orders: gold, full/orders: namespace"
    lines += [f"  namespaces: {{{namespaces}}}", "  topics:"]
    lines += [
        f'    "persistent://full/orders/t{number}": topic-{number}' for number in range(TOPICS)
    ]
    return "\n".join([*lines, ""])


def bodies(case: Case) -> list[str]:
    """What is asked, each body another one."""
    dice = random.Random(case.tenant + str(case.items))

    def item(number: int) -> Item:
        amounts: Item = {"messages": 1, "bytes": dice.randrange(100, 2000), "attempt": 1}
        if not case.tenant:
            return {"group": f"g{number % GROUPS}"} | amounts
        topic = f"t{dice.randrange(TOPICS)}"
        return {"tenant": case.tenant, "namespace": "orders", "topic": topic} | amounts

    def written(value: object) -> str:
        return json.dumps(value, separators=(",", ":"))

    if not case.items:
        return [written(item(number)) for number in range(GROUPS)]
    return [written([item(number) for number in range(case.items)]) for _ in range(20)]


# The servers.


class Server(NamedTuple):
    """A server that runs."""

    port: int
    process: psutil.Process

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def rss_mb(self) -> float:
        """Resident memory now, its children's too."""
        every = [self.process, *self.process.children()]
        return float(sum(one.memory_info().rss for one in every) / 1e6)

    def used_s(self) -> float:
        """Processor time so far, its children's too."""
        every = [self.process, *self.process.children()]
        return float(sum(sum(one.cpu_times()[:2]) for one in every))


def start_daemon(
    who: str,
    folder: Path,
    url: str,
    stack: ExitStack,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    tokens: str = TOKENS_FILE,
) -> Server:
    """A daemon that ends with the stack; each has an exchange topic for itself.

    Args:
        who: its name, and which policies and path it has.
        folder: of its files.
        url: of the exchange.
        stack: that ends it.
        settings: further ones, as in the environment.
        tokens: content of its tokens file; empty: it needs none.
    """
    groups, tokens_file = folder / f"{who}.yaml", folder / f"{who}-tokens.yaml"
    groups.write_text(policies(GROUPS if who == "groups" else 0))
    tokens_file.touch(mode=0o600)
    tokens_file.write_text(tokens)
    command = [sys.executable, "-m", "rgd", "serve", "--broker", who, "--exchange", url]
    command += ["--listen", "127.0.0.1:0", "--log-dir", str(folder / f"{who}-log")]
    own = {
        "RGD_POLICIES__SOURCE": "file",
        "RGD_POLICIES__FILE": str(groups),
        "RGD_EXCHANGE__TOPIC": f"non-persistent://public/rgd/usage-{who}",
        **settings,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    if tokens:
        own["RGD_HTTP__TOKENS_FILE"] = str(tokens_file)
    process = subprocess.Popen(
        command,
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    stack.callback(process.wait, READY_TIMEOUT_S)
    stack.callback(process.terminate)
    # All of its threads: they begin later, and inherit it.
    os.sched_setaffinity(process.pid, SERVER_CORES)
    assert process.stdout is not None
    stack.callback(process.stdout.close)
    found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
    assert found is not None, "the daemon does not start"
    return Server(int(found[1]), psutil.Process(process.pid))


def until_ready(server: Server) -> None:
    """Wait until a daemon knows its shares from the exchange."""
    until = time.monotonic() + READY_TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(f"{server.url}/readyz") as answer:  # noqa: S310 -- our own
                if json.loads(answer.read()) == {"ready": True}:
                    return
        except urllib.error.HTTPError:
            pass
        if time.monotonic() > until:
            raise SystemExit("a daemon is not ready")
        time.sleep(0.1)


def start_nginx(folder: Path, stack: ExitStack) -> Server:
    """Nginx with one worker that answers a constant."""
    port = random.randrange(20_000, 30_000)
    file = folder / "nginx.conf"
    file.write_text(NGINX.format(folder=folder, port=port))
    process = subprocess.Popen(
        ["nginx", "-c", str(file), "-e", str(folder / "error.log")],  # noqa: S607 -- wherever it is
        preexec_fn=lambda: os.sched_setaffinity(0, SERVER_CORES),  # noqa: PLW1509 -- one thread
    )
    stack.callback(process.wait, READY_TIMEOUT_S)
    stack.callback(process.terminate)
    return Server(port, psutil.Process(process.pid))


# The load.


class Passed(NamedTuple):
    """What wrk says of one pass, and what the server's processor time says."""

    per_s: float
    #: Requests in a second of the server's processor time: other work on the machine does not change it much.
    per_cpu_s: float
    p50_ms: float
    p99_ms: float


def load(server: "Server", script: Path, seconds: float) -> Passed:
    """One pass of wrk."""
    used_s = server.used_s()
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{max(1, round(seconds))}s",
        "--latency",
        "--timeout",
        "30s",
    ]
    command += ["-s", str(script), server.url]
    told = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, LOAD_CORES),
    ).stdout
    if "Non-2xx" in told or "Socket errors" in told:
        raise SystemExit(f"not every answer was 200:\n{told}")
    found = re.search(r"(\d+) requests in", told)
    assert found is not None, told
    per_cpu_s = int(found[1]) / (server.used_s() - used_s)
    return Passed(_rate(told), per_cpu_s, _latency_ms(told, 50), _latency_ms(told, 99))


def _rate(told: str) -> float:
    found = re.search(r"Requests/sec:\s+([\d.]+)", told)
    assert found is not None, told
    return float(found[1])


def _latency_ms(told: str, percent: int) -> float:
    found = re.search(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s)\s*$", told, re.MULTILINE)
    assert found is not None, told
    return round(float(found[1]) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[found[2]], 3)


def prepare(folder: Path, name: str, case: Case) -> Path:
    """The script of a case for wrk."""
    told = folder / f"{name}.jsonl"
    told.write_text("\n".join([*bodies(case), ""]))
    script = folder / f"{name}.lua"
    script.write_text(SCRIPT.format(token=TOKEN, bodies=told))
    return script


def compare(options: argparse.Namespace) -> dict[str, float]:
    """All cases, by turns."""
    chosen = {name: case for name, case in CASES.items() if options.only in name or name == "nginx"}
    has_leases = options.only in LEASED
    best: dict[str, Passed] = {}
    leased: dict[str, float] = {}
    # The load, and all that is started from here unless it says otherwise.
    os.sched_setaffinity(0, LOAD_CORES)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        scripts = {name: prepare(folder, name, case) for name, case in chosen.items()}
        servers = {case.server for case in chosen.values()} - {"nginx"}
        if has_leases:
            servers.add("lane")
        broker = EmbeddedBroker(folder / "broker")
        url = asyncio.run(broker.ensure())
        stack.callback(lambda: asyncio.run(broker.stop()))
        ports = {who: start_daemon(who, folder, url, stack) for who in sorted(servers)}
        for server in ports.values():
            until_ready(server)
        ports["nginx"] = start_nginx(folder, stack)
        for name, case in chosen.items():
            load(ports[case.server], scripts[name], WARM_S)
        for _ in range(options.passes):
            for name, case in chosen.items():
                passed = load(ports[case.server], scripts[name], options.seconds)
                best[name] = (
                    Passed(
                        *map(max, passed[:2], best[name][:2]), *map(min, passed[2:], best[name][2:])
                    )
                    if name in best
                    else passed
                )
            if has_leases:
                leased = better(leased, leased_figures(ports["lane"].url, TOKEN))
    return figures_of(best) | leased_to_nginx(leased, best["nginx"])


def better(best: dict[str, float], figures: dict[str, float]) -> dict[str, float]:
    """The larger of each two figures."""
    return {name: max(value, best.get(name, 0)) for name, value in figures.items()}


def leased_to_nginx(leased: dict[str, float], nginx: Passed) -> dict[str, float]:
    """The figures of leases, and what they are to nginx's requests."""
    rates = {name for name in leased if name.endswith("_per_s")}
    return leased | {
        f"{name.removesuffix('_per_s')}_to_nginx": round(leased[name] / nginx.per_s, 1)
        for name in sorted(rates)
    }


def figures_of(best: dict[str, Passed]) -> dict[str, float]:
    """The figures of the best passes."""
    figures: dict[str, float] = {"connections": CONNECTIONS, "cores": len(CORES)}
    nginx = best["nginx"]
    for name, passed in best.items():
        decisions = max(1, CASES[name].items)
        figures[f"{name}_requests_per_s"] = round(passed.per_s)
        figures[f"{name}_cpu_us"] = round(1e6 / passed.per_cpu_s, 1)
        if decisions > 1:
            figures[f"{name}_decisions_per_s"] = round(passed.per_s * decisions)
        figures[f"{name}_p50_ms"], figures[f"{name}_p99_ms"] = passed.p50_ms, passed.p99_ms
        if name != "nginx":
            figures[f"{name}_to_nginx"] = round(passed.per_s * decisions / nginx.per_s, 2)
            figures[f"{name}_to_nginx_cpu"] = round(
                passed.per_cpu_s * decisions / nginx.per_cpu_s, 2
            )
    return figures


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    missing = [name for name in ("wrk", "nginx") if shutil.which(name) is None]
    if missing:
        print(
            f"SKIPPED: {' and '.join(missing)} missing: .ci/install-components installs them",
            file=sys.stderr,
        )
        return {"skipped": 1}
    return compare(options)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each pass")
    parser.add_argument(
        "--passes", type=int, default=3, help="of each case, of which the best counts"
    )
    parser.add_argument("--only", default="", help="cases with this in their name, and nginx")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
