"""The live page in a headless Chromium: what it shows, to whom it can be shown, and what it leaves alone.

Of one whole daemon in this process, and of three that are processes. Not covered: what the figures are (tests/unit/views).
"""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from rgd.adapters.http.client import DaemonClient
from rgd.adapters.http.tokens import Tokens
from rgd.app.demo.cluster import Daemon
from rgd.core.buckets.decision import Request
from rgd.core.policies.model import Attachments, Group, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.door import Scope, digest_of
from tests.support.browser import Tab, new_tab
from tests.support.child_processes import free_ports
from tests.support.exchanges import embedded_exchange
from tests.support.running_daemon import RunningDaemon, running_daemon

GROUPS = {
    "both": Group("both", Limit(Rates(rate_of(5), rate_of(5_000_000)), Rates(rate_of(9)))),
    "stopped": Group("stopped", blocked=True),
}
ATTACHED = Attachments(namespaces={"acme/orders": "both", "acme/stopped": "stopped"})
SNAPSHOT = PolicySnapshot(GROUPS, ATTACHED)
IS_LIVE = "document.getElementById('state').classList.contains('live')"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path, SNAPSHOT) as daemon:
        yield daemon


async def text(tab: Tab, element: str) -> str:
    return str(await tab.value(f"document.getElementById('{element}').innerText"))


async def go(tab: Tab, asked: str, shown: str) -> None:
    """Follow a link within the page."""
    await tab.value(f"location.hash = '{asked}'")
    await tab.until(f"document.getElementById('{shown}').checkVisibility()")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_and_nothing_is_asked_of_anybody_else(
    running: RunningDaemon, browser: str, scheme: str
) -> None:
    running.ask(*[Request(messages=4, namespace="acme/orders")] * 20)
    async with new_tab(browser) as tab:
        await tab.open(running.url)
        await tab.until(IS_LIVE)
        # What was explained stays, so that these two are everything that there is to see.
        await go(tab, "why=acme/orders/eu&kind=publish", "why-table")
        for asked, shown in (("group=both", "group-rows"), ("runbook=RgdIsolated", "runbook-text")):
            await go(tab, asked, shown)
            await tab.until(f"document.getElementById('{shown}').children.length")
            await tab.value(
                "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
            )
            for width in (1280, 320):
                await tab.look(width, prefers_color_scheme=scheme)
                assert await tab.axe() == [], (asked, width)
                assert await tab.value("document.documentElement.scrollWidth") <= width
        assert tab.console == []
        assert [one for one in tab.requests if not one.startswith(f"{running.url}/")] == []


@pytest.mark.slow
async def test_every_control_is_reached_by_keyboard_and_works(
    running: RunningDaemon, browser: str
) -> None:
    async with new_tab(browser) as tab:
        await tab.open(running.url)
        await tab.until(IS_LIVE)
        await tab.press("Tab")
        assert await tab.value("document.activeElement.className") == "skip"
        visible = """[...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
            .filter((one) => one.checkVisibility())"""
        await tab.value("window.reached = new Set([document.activeElement])")
        for _ in range(await tab.value(f"{visible}.length")):
            await tab.press("Tab")
            await tab.value("void window.reached.add(document.activeElement)")
        missed = f"{visible}.filter((one) => !window.reached.has(one)).map((one) => one.outerHTML)"
        assert await tab.value(missed) == []

        await tab.value("document.querySelector('#groups-rows a[href$=both]').focus()")
        await tab.press("Enter")
        await tab.until(
            "document.activeElement.id === 'group-title' && !!document.querySelector('#group-rows article')"
        )
        await tab.press("Tab")
        assert await tab.value("document.activeElement.innerText") == "Close"
        await tab.press("Enter")
        await tab.until("document.getElementById('group').hidden")

        await tab.value("document.getElementById('why-name').focus()")
        await tab.press("acme/stopped", "Enter")
        await tab.until("document.getElementById('why-verdict').innerText")
        assert (
            await text(tab, "why-verdict")
            == "acme/stopped publish is blocked by group stopped: nothing passes"
        )
        # It can be linked to.
        assert await tab.value("location.hash") == "#why=acme%2Fstopped&kind=publish"


@pytest.mark.slow
async def test_search_finds_groups_beyond_those_under_pressure(
    tmp_path: Path, browser: str
) -> None:
    names = [f"g{number:02}" for number in range(60)]
    many = PolicySnapshot({name: Group(name, Limit(Rates(rate_of(4)))) for name in names})
    with running_daemon(tmp_path, many) as running:
        async with new_tab(browser) as tab:
            await tab.open(running.url)
            await tab.until(IS_LIVE)
            rows = "[...document.querySelectorAll('#groups-rows a')].map((one) => one.innerText)"
            assert len(await tab.value(rows)) == 50
            await tab.value("document.getElementById('search').focus()")
            await tab.press("g59")
            await tab.until(f"{rows}.join() === 'g59'")
            await tab.press("nothing")
            await tab.until("!document.querySelector('#groups-rows a')")
            assert "No group has these words" in await text(
                tab, "groups-more"
            ) or "begins with" in await text(tab, "groups-more")


@pytest.mark.slow
async def test_the_token_is_asked_for_and_kept_nowhere(tmp_path: Path, browser: str) -> None:
    tokens = Tokens({digest_of("s3cret"): frozenset({Scope.READ})})
    with running_daemon(tmp_path, SNAPSHOT, tokens=tokens) as running:
        async with new_tab(browser) as tab:
            await tab.open(running.url)
            await tab.until("document.activeElement.id === 'token'")
            # Nothing was asked for in vain.
            assert tab.console == []
            # No header may have it.
            await tab.press("wr\N{HORIZONTAL ELLIPSIS}ng", "Enter")
            assert await tab.value("document.getElementById('ask-token').checkVisibility()")
            await tab.value("document.getElementById('token').value = ''")
            await tab.press("wrong", "Enter")
            await tab.until("document.getElementById('token-why').innerText.includes('not known')")
            await tab.until("document.activeElement.id === 'token'")
            await tab.press("s3cret", "Enter")
            await tab.until(IS_LIVE)
            kept = "JSON.stringify([localStorage, sessionStorage, document.cookie, location.href, document.documentElement.outerHTML])"
            assert "s3cret" not in await tab.value(kept)
            assert not any("s3cret" in one for one in tab.requests)


@pytest.mark.slow
async def test_paper_has_no_controls_and_who_wants_no_motion_has_none(
    running: RunningDaemon, browser: str
) -> None:
    async with new_tab(browser) as tab:
        await tab.look(1280, prefers_reduced_motion="reduce")
        await tab.open(running.url)
        await tab.until(IS_LIVE)
        moving = "[...document.querySelectorAll('*')].filter((one) => getComputedStyle(one).transitionDuration !== '0s')"
        assert await tab.value(f"{moving}.length") == 0
        await tab.look(1280, media="print")
        shown = "['search', 'pause', 'ask-why'].filter((id) => document.getElementById(id).checkVisibility())"
        assert await tab.value(shown) == []


# Three daemons.

GROUPS_FILE = """\
groups:
  gold: {publish: {messages: 300}}
  stopped: {publish: {messages: 5}, blocked: true}
attach:
  namespaces: {acme/orders: gold, acme/stopped: stopped}
"""
QUOTA = "[...document.querySelectorAll('#groups-rows tr')].some((row) => row.innerText.includes('gold') && row.innerText.includes('777'))"
SILENT = "[...document.querySelectorAll('#brokers li')].some((one) => one.innerText.includes('broker-3') && one.className)"
STALE = "document.getElementById('state').className.includes('stale')"


@pytest.mark.e2e
@pytest.mark.embedded
async def test_three_daemons_show_the_same_a_change_and_a_kill(
    tmp_path: Path, browser: str
) -> None:
    (tmp_path / "groups.yaml").write_text(GROUPS_FILE)
    names = ("broker-1", "broker-2", "broker-3")
    async with AsyncExitStack() as stack:
        exchange = await stack.enter_async_context(embedded_exchange(tmp_path / "exchange"))
        daemons = [
            Daemon(name, tmp_path, exchange.url, port=port)
            for name, port in zip(names, free_ports(3), strict=True)
        ]
        for daemon in daemons:
            stack.push_async_callback(daemon.stop)
            await daemon.start()
        tabs = [await stack.enter_async_context(new_tab(browser)) for _ in daemons]
        for tab, daemon in zip(tabs, daemons, strict=True):
            await tab.open(daemon.base)
            await tab.until("document.querySelectorAll('#brokers li:not(.silent)').length === 3")
        await _same_words_as_why(tabs[1], daemons[1])

        async with DaemonClient(daemons[0].base) as client:
            await client.patch_group("gold", {"publish": {"messages": 777}})
        for tab in tabs:
            await tab.until(QUOTA)
            assert tab.console == []
        killed_ms = await tabs[2].value("Date.now()")
        await daemons[2].kill()
        await tabs[2].until(STALE)
        assert (await text(tabs[2], "verdict")).startswith("Stale since ")
        for tab in tabs[:2]:
            await tab.until(SILENT)
            await tab.until("document.getElementById('verdict').innerText.includes('broker-3')")
        await daemons[2].start()
        await tabs[2].until(IS_LIVE)
        # Those of the daemon that was killed had the same numbers.
        times = "[...document.querySelectorAll('#events-list time')].map((one) => Date.parse(one.dateTime))"
        await tabs[2].until(f"({times}).length && ({times}).every((at) => at > {killed_ms})")
        for tab in tabs:
            await tab.until(
                "document.querySelectorAll('#brokers li:not(.silent):not(.gone)').length === 3"
            )


async def _same_words_as_why(tab: Tab, daemon: Daemon) -> None:
    """The answer in the page is `rgd why`'s, but for figures that go on."""
    for name in ("nobody/here", "acme/stopped", "acme/orders", "acme/orders/eu"):
        command = [sys.executable, "-m", "rgd", "why", name, "--url", daemon.base]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, check=True
        )
        await tab.value(f"location.hash = 'why={name}&kind=publish'")
        shown = await tab.until(
            f"(() => {{ const said = document.getElementById('why-verdict').innerText; return said.includes('{name}') && said; }})()"
        )
        figures = re.compile(r"\d+")
        assert figures.sub("N", shown) == figures.sub("N", done.stdout.splitlines()[0])
