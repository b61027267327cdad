"""Records what real daemons show in /metrics under a fault: tests/data/faults, which promtool replays.

    python -m tests.support.recorded_faults [NAME...]

Each scene starts daemons (`rgd serve`), keeps a page of /metrics, breaks something, and keeps the page that shows it (two where it is a counter that goes on). Record again
whoever renames a metric, adds an alert, or changes what a fault does; with names only those scenes. It takes two minutes.
`tests/tidy/test_observability.py` replays the pages through observability/alerts.yaml.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from rgd.app.demo.cluster import Daemon
from tests.support.exchanges import embedded_exchange
from tests.support.lone_daemon import NOWHERE, plane_of
from tests.support.raw_pulsar import RawProducer, metadata

PAGES = Path(__file__).parents[1] / "data" / "faults"
SOON_S = 120.0
GROUPS = "groups: {gold: {publish: {messages: 1000}}}\n"
TOKEN = "a-token-of-tests"
CALLERS = "a-callers-token"
Page = dict[str, float]


@dataclass
class Scene:
    """One fault, its daemons, and the two pages of the first one."""

    folder: Path
    url: str
    stack: AsyncExitStack
    #: Empty: the fault is there from the start.
    before: Page = field(default_factory=dict)
    after: list[Page] = field(default_factory=list)
    daemons: list[Daemon] = field(default_factory=list)

    async def start(self, name: str = "broker-1", groups: str = GROUPS, **settings: str) -> Daemon:
        """Start a daemon with these groups; the first one is the one that is scraped."""
        folder = self.folder / f"{len(self.daemons)}"
        folder.mkdir()
        if groups:
            (folder / "groups.yaml").write_text(groups)
        own = {"EXCHANGE__ROUND_MS": "500", "EXCHANGE__TOPIC": self.topic, **settings}
        environ = {f"RGD_{key}": value for key, value in own.items()}
        # Where a scene has a bug to start with.
        environ["PYTHONPATH"] = str(self.folder)
        daemon = Daemon(name, folder, self.url, environ)
        self.daemons.append(daemon)
        self.stack.push_async_callback(daemon.stop)
        await daemon.start()
        return daemon

    @property
    def topic(self) -> str:
        return f"non-persistent://public/rgd/{self.folder.name}"

    async def sound(self, peers: int = 0) -> None:
        """Wait until the first daemon is sound, and keep that page."""
        self.before = await self.until(
            lambda page: (
                page["rgd_ready"] == 1 and page["rgd_degraded"] == 0 and page["rgd_peers"] == peers
            )
        )

    async def broken(self, is_so: Callable[[Page], bool], *, ask: bool = False) -> None:
        """Wait until the first daemon shows the fault, and keep that page; again, where it goes on."""
        self.after.append(await self.until(is_so, ask=ask))

    async def until(
        self, is_so: Callable[[Page], bool], *, ask: bool = False, of: Daemon | None = None
    ) -> Page:
        """Scrape a daemon, the first one unless it is named, until it is so."""
        while not is_so(page := page_of(await self.call("/metrics", of=of))):
            if ask:
                await self.call("/v1/acquire", b'{"group":"gold"}', token=CALLERS)
        return page

    async def call(
        self,
        path: str,
        body: bytes | None = None,
        method: str | None = None,
        of: Daemon | None = None,
        token: str = TOKEN,
    ) -> str:
        """What a daemon answers, the first one unless it is named, whatever its status."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        url = f"{(of or self.daemons[0]).base}{path}"
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method or ("POST" if body else "GET"), url, data=body) as answer,
        ):
            return await answer.text()


def page_of(text: str) -> Page:
    """The samples of a page, by name and labels."""
    lines = [line for line in text.splitlines() if re.match(r"rgd_\w+(?<!_bucket)[{ ]", line)]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


async def a_daemon_dies(scene: Scene) -> None:
    await scene.start()
    other = await scene.start("broker-2")
    await scene.sound(peers=1)
    await other.kill()
    await scene.broken(lambda page: page["rgd_peers"] == 0)


async def the_cluster_is_gone(scene: Scene) -> None:
    """The one daemon dies, so that nothing is scraped any more."""
    daemon = await scene.start()
    await scene.sound()
    await daemon.kill()
    scene.after.append({})


async def the_exchange_ends(scene: Scene) -> None:
    exchange = embedded_exchange(scene.folder / "exchange")
    broker = await scene.stack.enter_async_context(exchange)
    scene.url = broker.url
    await scene.start()
    await scene.sound()
    await broker.stop()
    await scene.broken(lambda page: page["rgd_isolated"] == page["rgd_policies_old"] == 1)


async def policies_were_never_known(scene: Scene) -> None:
    scene.url = NOWHERE
    await scene.start(groups="")
    refused = "rgd_policies_unknown_refused_total"
    await scene.broken(lambda page: page[refused] > 0, ask=True)
    await scene.broken(lambda page: page[refused] > 100 and page["rgd_isolated"] == 1, ask=True)


async def daemons_have_other_files(scene: Scene) -> None:
    await scene.start(POLICIES__SOURCE="file")
    await scene.sound()
    await scene.start("broker-2", GROUPS.replace("1000", "999"), POLICIES__SOURCE="file")
    await scene.broken(lambda page: page["rgd_policy_hash_conflict"] == 1)


async def a_name_is_taken(scene: Scene) -> None:
    """A daemon is stopped, another one is started under its name, and the first one goes on, and ends."""
    first = await scene.start(EXCHANGE__YIELD_ROUNDS="30")
    other = await scene.start("broker-2")
    await scene.sound(peers=1)
    os.kill(first.pid, signal.SIGSTOP)
    await scene.until(lambda page: page["rgd_peers"] == 0, of=other)
    twin = await scene.start()
    await scene.until(lambda page: page["rgd_ready"] == 1, of=twin)
    os.kill(first.pid, signal.SIGCONT)
    await scene.broken(lambda page: page["rgd_name_conflict"] == 1)


async def a_view_has_a_bug(scene: Scene) -> None:
    bug = "import rgd.app.daemon as it\nit.group_view = None\n"
    (scene.folder / "sitecustomize.py").write_text(bug)
    await scene.start()
    await scene.sound()
    await scene.call("/v1/groups/gold")
    await scene.broken(lambda page: page['rgd_internal_errors_total{where="view"}'] > 0)


async def a_plane_is_killed(scene: Scene) -> None:
    daemon = await scene.start()
    await scene.sound()
    plane_of(daemon).kill()
    # No page without a plane.
    restarts = "rgd_plane_restarts_total"
    await scene.broken(lambda page: page.get(restarts) == 1 and page["rgd_degraded"] == 0)


async def the_log_cannot_be_written(scene: Scene) -> None:
    await scene.start()
    await scene.sound()
    log = scene.folder / "0" / "log" / "broker-1"
    shutil.rmtree(log)
    log.write_text("a file in its place")
    await scene.broken(lambda page: page["rgd_log_stopped"] == 1, ask=True)


async def the_tier_is_gone(scene: Scene) -> None:
    tier = scene.folder / "tier"
    uploaded = "rgd_tier_uploaded_bytes_total"
    await scene.start(LOG__TIER_URL=str(tier), LOG__SEGMENT_AGE_S="1")
    await scene.until(lambda page: page[uploaded] > 0, ask=True)
    await scene.sound()
    shutil.rmtree(tier)
    tier.write_text("a file in its place")
    await scene.broken(lambda page: page["rgd_tier_failures_total"] > 0, ask=True)


async def a_reader_is_too_slow(scene: Scene) -> None:
    small = {"LOG__SEGMENT_BYTES": "4096", "LOG__LOCAL_BYTES": "8192"}
    await scene.start(EXCHANGE__ROUND_MS="100", **small)
    await scene.call("/v1/log/cursors/nightly", b'{"index":0}', "PUT")
    await scene.sound()
    passed = 'rgd_log_cursor_passed{cursor="nightly"}'
    await scene.broken(lambda page: page[passed] > 0, ask=True)


async def the_tokens_are_damaged(scene: Scene) -> None:
    tokens = scene.folder / "tokens.yaml"
    scopes = "scopes: [query, read, admin]"
    tokens.write_text(f"- {{name: test, token: {TOKEN}, {scopes}}}\n")
    tokens.chmod(0o600)
    await scene.start(HTTP__TOKENS_FILE=str(tokens))
    await scene.sound()
    tokens.write_text("- {name: test")
    old = 'rgd_http_credentials_old{credential="tokens"}'
    await scene.broken(lambda page: page[old] == 1)


async def a_token_is_withdrawn(scene: Scene) -> None:
    tokens = scene.folder / "tokens.yaml"
    callers = f"- {{name: caller, token: {CALLERS}, scopes: [query]}}\n"
    own = f"- {{name: test, token: {TOKEN}, scopes: [read]}}\n"
    tokens.write_text(callers + own)
    tokens.chmod(0o600)
    await scene.start(HTTP__TOKENS_FILE=str(tokens))
    await scene.sound()
    tokens.write_text(own)
    lacks = 'rgd_http_unauthorised_total{reason="unknown_token"}'
    await scene.broken(lambda page: page[lacks] > 0, ask=True)
    await scene.broken(lambda page: page[lacks] > 100, ask=True)


async def there_are_too_many_connections(scene: Scene) -> None:
    daemon = await scene.start(HTTP__CONNECTIONS_MAX="1")
    await scene.sound()
    port = int(daemon.base.rpartition(":")[2])
    _, held = await asyncio.open_connection("127.0.0.1", port)
    scene.stack.callback(held.close)
    held.write(b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\n\r\n{")
    await held.drain()
    refused = 'rgd_http_connections_refused_total{reason="connections_max"}'
    await scene.broken(lambda page: page[refused] > 0, ask=True)


async def a_stranger_writes_to_the_topic(scene: Scene) -> None:
    await scene.start()
    await scene.sound()
    async with RawProducer(int(scene.url.rpartition(":")[2]), scene.topic) as stranger:
        await stranger.send((metadata(number), b"no report") for number in range(20))
        await scene.broken(lambda page: dropped_of(page) >= 20)
        await stranger.send((metadata(number), b"no report") for number in range(20, 40))
        await scene.broken(lambda page: dropped_of(page) >= 40)


def dropped_of(page: Page) -> float:
    return sum(page[key] for key in page if key.startswith("rgd_reports_dropped_total"))


async def pulsars_admin_api_is_away(scene: Scene) -> None:
    await scene.start(
        EXCHANGE__ADMIN_URL="http://127.0.0.1:1",
        EXCHANGE__DIALECTS="compact,pulsar",
        EXCHANGE__PULSAR_PERIOD_S="1",
        BACKLOG__POLL="true",
        BACKLOG__POLL_MS="100",
    )
    await scene.broken(lambda page: failures_of(page) > 1)
    await scene.broken(lambda page: failures_of(page) > 5)


def failures_of(page: Page) -> float:
    return min(page["rgd_backlog_poll_failures_total"], page["rgd_stock_list_failures_total"])


Fault = Callable[[Scene], Awaitable[None]]

#: What each fault is paged for. `RgdDegraded` comes after a quarter of an hour where `/readyz` names it.
FAULTS: dict[Fault, set[str]] = {
    a_daemon_dies: {"RgdDaemonMissing"},
    the_cluster_is_gone: {"RgdGone"},
    the_exchange_ends: {"RgdIsolated", "RgdPoliciesOld", "RgdDegraded"},
    policies_were_never_known: {
        *("RgdNotReady", "RgdPoliciesUnknown", "RgdServerErrors"),
        *("RgdPoliciesOld", "RgdDegraded", "RgdIsolated"),
    },
    daemons_have_other_files: {"RgdPoliciesDiffer", "RgdDegraded"},
    a_name_is_taken: {"RgdNameConflict"},
    a_view_has_a_bug: {"RgdInternalErrors"},
    a_plane_is_killed: {"RgdPlaneRestarts"},
    the_log_cannot_be_written: {"RgdUsageLogLost", "RgdDegraded"},
    the_tier_is_gone: {"RgdTierFails", "RgdDegraded"},
    a_reader_is_too_slow: {"RgdReaderLostEntries"},
    the_tokens_are_damaged: {"RgdCredentialsOld"},
    a_token_is_withdrawn: {"RgdCallersUnauthorised"},
    there_are_too_many_connections: {"RgdConnectionsRefused"},
    a_stranger_writes_to_the_topic: {"RgdReportsDropped"},
    pulsars_admin_api_is_away: {"RgdBacklogsUnknown", "RgdStockBrokersDiffer", "RgdDegraded"},
}


async def record(fault: Fault, folder: Path, url: str) -> None:
    """Play a scene and keep its pages."""
    async with AsyncExitStack() as stack, asyncio.timeout(SOON_S):
        scene = Scene(folder, url, stack)
        await fault(scene)
    pages = {"before": scene.before, "after": scene.after}
    (PAGES / f"{fault.__name__}.json").write_text(
        json.dumps(pages, indent=1, sort_keys=True) + "\n"
    )


async def main(names: set[str]) -> None:
    """Record these scenes, or all, one after the other."""
    PAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with embedded_exchange(Path(folder) / "exchange") as broker:
            for fault in FAULTS:
                if not names or fault.__name__ in names:
                    scene = Path(folder) / fault.__name__
                    scene.mkdir()
                    await record(fault, scene, broker.url)


if __name__ == "__main__":
    asyncio.run(main(set(sys.argv[1:])))
