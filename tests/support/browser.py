"""A headless Chromium for tests of the pages that rgd makes, driven over its debugging protocol.

Everything the page logs and every address it asks for is kept (`Tab.console`, `Tab.requests`), so that a test can say
that there was nothing.
"""

import asyncio
import base64
import itertools
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiohttp

from tests.support import components
from tests.support.child_processes import end, start_dying_with_parent

START_S = 60.0

#: Codes of the keys that tests press.
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}


class Tab:
    """One page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        #: Texts that the page, or the browser about it, wrote to the console.
        self.console: list[str] = []
        #: Addresses that were asked for.
        self.requests: list[str] = []

    async def follow(self) -> None:
        """Take what the browser says, until it ends."""
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            elif told["method"] == "Runtime.consoleAPICalled":
                self.console.append(str(told["params"]["args"]))
            elif told["method"] == "Runtime.exceptionThrown":
                self.console.append(str(told["params"]["exceptionDetails"]))
            elif told["method"] == "Log.entryAdded":
                self.console.append(told["params"]["entry"]["text"])
            elif told["method"] == "Network.requestWillBeSent":
                self.requests.append(told["params"]["request"]["url"])

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        told = await answer
        assert "error" not in told, (method, told)
        result: dict[str, Any] = told["result"]
        return result

    async def open(self, url: str) -> None:
        """Go to an address, and wait until the page is there."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def value(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        told = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, (expression, told)
        return told["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until an expression is true; returns its value. The test's own timeout ends it."""
        value = None
        while not value:
            await asyncio.sleep(0.02)
            value = await self.value(expression)
        return value

    async def press(self, *keys: str) -> None:
        """Press keys one after the other; a text is typed."""
        for key in keys:
            if key not in _KEYS:
                await self.call("Input.insertText", text=key)
                continue
            text = {"Enter": "\r", " ": " "}.get(key, "")
            event = {"key": key, "windowsVirtualKeyCode": _KEYS[key]}
            await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
            await self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    async def axe(self) -> list[str]:
        """What axe finds on the page, each rule with the first place."""
        script = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        await self.call("Runtime.evaluate", expression=script)
        found = await self.value("axe.run().then((found) => found.violations)")
        return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found]

    async def look(self, width: int, height: int = 900, **media: str) -> None:
        """Have a size, and preferences such as `prefers_color_scheme="dark"`; `media="print"`."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        kind = media.pop("media", "")
        features = [
            {"name": name.replace("_", "-"), "value": value} for name, value in media.items()
        ]
        await self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    async def picture(self, height: int = 0) -> bytes:
        """The page as PNG: what the window shows, or with a height so much from the top."""
        width = await self.value("document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        told = await self.call("Page.captureScreenshot", **({"clip": clip} if height else {}))
        return base64.b64decode(told["data"])


@contextmanager
def running_browser(folder: Path) -> Iterator[str]:
    """Run a browser with its profile in this folder; the address of its debugging protocol."""
    port = folder / "DevToolsActivePort"
    command: list[str | Path] = [
        components.chromium(),
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--hide-scrollbars", "--no-first-run", "--disable-extensions"),
        *("--disable-background-networking", "--remote-debugging-port=0"),
        *(f"--user-data-dir={folder}", "about:blank"),
    ]
    log = folder.with_suffix(".log")
    process = start_dying_with_parent(command, environment=os.environ, log=log)
    try:
        while not port.is_file() or "\n" not in port.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port.read_text().partition(chr(10))[0]}"
    finally:
        end(process, START_S)


@asynccontextmanager
async def new_tab(browser: str) -> AsyncIterator[Tab]:
    """An empty page of a running browser."""
    async with (
        aiohttp.ClientSession() as session,
        session.put(f"{browser}/json/new?about:blank") as answer,
        session.ws_connect((await answer.json())["webSocketDebuggerUrl"], max_msg_size=0) as socket,
        asyncio.TaskGroup() as tasks,
    ):
        tab = Tab(socket)
        following = tasks.create_task(tab.follow())
        for domain in ("Page", "Runtime", "Log", "Network"):
            await tab.call(f"{domain}.enable")
        # As if it were the tab that is looked at: the browser slows others down.
        await tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
        yield tab
        await tab.call("Page.close")
        following.cancel()
