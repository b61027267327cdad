"""Makes the picture of the live page that the README shows: three daemons, real load, a headless Chromium.

    python -m tests.integration.page.picture     # writes docs/live.png

It takes half a minute. Needs Chromium and the embedded broker.
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.cluster import Daemon
from tests.support.browser import new_tab, running_browser
from tests.support.exchanges import embedded_exchange
from tests.tidy.tree import ROOT

OUT: Final = ROOT / "docs" / "live.png"
LOAD_S: Final = 25.0
WIDTH, HEIGHT = 1180, 800
TICK_S: Final = 0.1

GROUPS: Final = """\
groups:
  gold: {publish: {messages: 300}, dispatch: {messages: 1000}}
  silver: {publish: {messages: 200}}
  bulk: {publish: {bytes: 2000000}}
  trial: {publish: {messages: 20}}
attach:
  namespaces: {acme/orders: gold, acme/payments: silver, acme/archive: bulk, acme/trial: trial}
"""

#: What each broker's callers ask for a second: name, messages, bytes of a message, kind.
LOADS: Final = (
    (("orders", 550, 0, "publish"), ("payments", 70, 0, "publish"), ("trial", 35, 0, "publish")),
    (
        ("orders", 150, 0, "publish"),
        ("payments", 60, 0, "publish"),
        ("archive", 90, 9000, "publish"),
    ),
    (
        ("orders", 60, 0, "publish"),
        ("orders", 700, 0, "dispatch"),
        ("archive", 70, 9000, "publish"),
    ),
)


async def ask(base: str, loads: tuple[tuple[str, int, int, str], ...]) -> None:
    """Be the callers of one broker for `LOAD_S`."""
    loop = asyncio.get_running_loop()
    until = loop.time() + LOAD_S
    async with DaemonClient(base) as client:
        while loop.time() < until:
            questions = [
                {
                    "tenant": "acme",
                    "namespace": namespace,
                    "topic": "eu",
                    "kind": kind,
                    "messages": 1,
                    "bytes": size,
                    "attempt": 1,
                }
                for namespace, messages, size, kind in loads
                for _ in range(round(messages * TICK_S))
            ]
            due = loop.time() + TICK_S
            await client.acquire_all(questions)
            await asyncio.sleep(max(0.0, due - loop.time()))


async def make(folder: Path, browser: str) -> bytes:
    """The picture, as PNG."""
    (folder / "groups.yaml").write_text(GROUPS)
    async with AsyncExitStack() as stack:
        exchange = await stack.enter_async_context(embedded_exchange(folder / "exchange"))
        daemons = [Daemon(f"broker-{number}", folder, exchange.url) for number in (1, 2, 3)]
        for daemon in daemons:
            stack.push_async_callback(daemon.stop)
            await daemon.start()
        tab = await stack.enter_async_context(new_tab(browser))
        await tab.look(WIDTH, HEIGHT, prefers_color_scheme="light")
        await tab.open(daemons[0].base)
        async with asyncio.TaskGroup() as tasks:
            for daemon, loads in zip(daemons, LOADS, strict=True):
                tasks.create_task(ask(daemon.base, loads))
        return await tab.picture(height=HEIGHT)


def main() -> None:
    """Write it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        folder = Path(made)
        with running_browser(folder / "profile") as browser:
            OUT.write_bytes(asyncio.run(make(folder, browser)))
    sys.stdout.write(f"{OUT}\n")


if __name__ == "__main__":
    main()
