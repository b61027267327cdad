"""Middleware in front of real applications: what is refused does not reach them, and is told when to come back."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import ClientSession, web

from rgd.client import Client, ClientSettings, Limiter, Name
from rgd.client.asgi import LimitedApp, Receive, Scope, Send
from rgd.client.web import limited
from rgd.core.policies.model import Attachments, Group, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from tests.support.running_daemon import RunningDaemon, running_daemon

#: Per second; a request is 100 bytes.
BYTES = 100
LARGE = 900


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    # One for each test: the first request leaves debt for seconds.
    groups = {
        name: Group(name, Limit(Rates(rate_of(None), rate_of(BYTES)))) for name in ("asgi", "web")
    }
    attached = {f"acme/{name}": name for name in groups}
    policies = PolicySnapshot(groups, Attachments(namespaces=attached))
    with running_daemon(tmp_path_factory.mktemp("daemon"), policies) as daemon:
        yield daemon


@pytest.fixture
def settings(running: RunningDaemon) -> ClientSettings:
    return ClientSettings(when_away="closed", url=running.url, timeout_s=20)


def is_refusal(status: int, headers: dict[str, str], body: bytes) -> bool:
    if status == 200:
        return False
    assert status == 429
    assert int(headers["retry-after"]) >= 1
    assert json.loads(body) == {"reason": "too many requests: resource_group"}
    return True


async def test_an_asgi_application_sees_only_what_was_granted(settings: ClientSettings) -> None:
    reached: list[str] = []
    sent: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async with Client(settings) as client:
        limiter = client.limiter(Name("acme", "asgi"))
        limited_app = LimitedApp(app, lambda scope: None if scope["path"] == "/free" else limiter)
        length = [(b"content-length", str(LARGE).encode())]
        for _ in range(3):
            scope = {"type": "http", "path": "/", "headers": length}
            await limited_app(scope, receive, send)
        before = len(reached)
        await limited_app({"type": "http", "path": "/free", "headers": length}, receive, send)
        await limited_app({"type": "websocket", "path": "/", "headers": []}, receive, send)

    assert reached[before:] == ["http", "websocket"]
    assert 1 <= before < 3
    start, body = sent[before : before + 2]
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert is_refusal(start["status"], headers, body["body"])


async def test_an_aiohttp_handler_sees_only_what_was_granted(settings: ClientSettings) -> None:
    reached = 0

    async def handle(request: web.Request) -> web.Response:
        nonlocal reached
        reached += 1
        return web.Response()

    async with Client(settings) as client:
        limiter = client.limiter(Name("acme", "web"))

        def limiter_of(request: web.Request) -> Limiter | None:
            return None if request.path == "/free" else limiter

        app = web.Application(middlewares=[limited(limiter_of)])
        app.router.add_route("*", "/{name:.*}", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        refused = 0
        async with ClientSession() as session:
            for path in ("/", "/", "/", "/free"):
                async with session.post(url + path, data=b"x" * LARGE) as answer:
                    headers = {name.lower(): value for name, value in answer.headers.items()}
                    refused += is_refusal(answer.status, headers, await answer.read())
        await runner.cleanup()

    assert refused >= 1
    assert reached == 4 - refused
