"""Middleware in front of real applications: what is refused does not reach them, and is told when to come back."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any, ClassVar

import pytest
import requests
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from rgd.client import BlockingClient, BlockingLimiter, Client, ClientSettings, Limiter, Name, wsgi
from rgd.client import fastapi as of_fastapi
from rgd.client.asgi import LimitedApp, Receive, Scope, Send
from rgd.client.errors import QuestionRefused
from rgd.client.web import limited
from rgd.client.web_answers import ask, refusal
from rgd.core.policies.model import Attachments, Group, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from tests.support.running_daemon import RunningDaemon, running_daemon

#: Per second; a request is 100 bytes.
BYTES = 100
LARGE = 900
#: More than could ever be granted.
HUGE = 90_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    # One for each test: the first request leaves debt for seconds.
    groups = {
        name: Group(name, Limit(Rates(rate_of(None), rate_of(BYTES))))
        for name in ("web", *(serve.__name__ for serve in SERVED))
    }
    attached = {f"acme/{name}": name for name in groups}
    policies = PolicySnapshot(groups, Attachments(namespaces=attached))
    with running_daemon(tmp_path_factory.mktemp("daemon"), policies) as daemon:
        yield daemon


@pytest.fixture
def settings(running: RunningDaemon) -> ClientSettings:
    return ClientSettings(when_away="closed", url=running.url, timeout_s=120)


def is_refusal(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    if status == 200:
        return False
    assert status == 429
    assert int(headers["retry-after"]) >= 1
    assert [*json.loads(body).values()] == ["too many requests: resource_group"]
    return True


#: Serves an application that notes the paths that reach it; yields its address. What is below /free is not limited.
Serve = Callable[[ClientSettings, list[str]], AbstractContextManager[str]]


@contextmanager
def flask(settings: ClientSettings, reached: list[str]) -> Iterator[str]:
    from flask import Flask

    app = Flask("limited")

    @app.post("/<path>")
    def handle(path: str) -> str:
        reached.append(path)
        return "hello"

    with blocking_limiter_of(settings, "flask") as limiter_of:
        app.wsgi_app = wsgi.LimitedApp(app.wsgi_app, limiter_of)  # type: ignore[method-assign]
        with werkzeug_serves(app) as url:
            yield url


@contextmanager
def django(settings: ClientSettings, reached: list[str]) -> Iterator[str]:
    from django.conf import settings as of_django
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpRequest, HttpResponse
    from django.urls import path

    def handle(request: HttpRequest, path: str) -> HttpResponse:
        reached.append(path)
        return HttpResponse("hello")

    class Urls:
        urlpatterns: ClassVar = [path("<path>", handle)]

    of_django.configure(ROOT_URLCONF=Urls, ALLOWED_HOSTS=["127.0.0.1"])
    with (
        blocking_limiter_of(settings, "django") as limiter_of,
        werkzeug_serves(wsgi.LimitedApp(get_wsgi_application(), limiter_of)) as url,
    ):
        yield url


@contextmanager
def fastapi(settings: ClientSettings, reached: list[str]) -> Iterator[str]:
    from fastapi import Depends

    client = Client(settings)
    limiter = client.limiter(Name("acme", "fastapi"))
    limits = of_fastapi.limited(lambda request: None if request.url.path == "/free" else limiter)
    app = fastapi_app(client, reached, [Depends(limits)])
    with uvicorn_serves(app) as url:
        yield url


@contextmanager
def asgi(settings: ClientSettings, reached: list[str]) -> Iterator[str]:
    client = Client(settings)
    limiter = client.limiter(Name("acme", "asgi"))
    app = fastapi_app(client, reached, [])
    limits = LimitedApp(app, lambda scope: None if scope["path"] == "/free" else limiter)
    with uvicorn_serves(limits) as url:
        yield url


SERVED: tuple[Serve, ...] = (flask, django, fastapi, asgi)


def fastapi_app(client: Client, reached: list[str], dependencies: list[Any]) -> Any:
    from fastapi import FastAPI

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with client:
            yield

    app = FastAPI(lifespan=lifespan, dependencies=dependencies)

    @app.post("/{path}")
    async def handle(path: str) -> str:
        reached.append(path)
        return "hello"

    return app


@contextmanager
def blocking_limiter_of(
    settings: ClientSettings, name: str
) -> Iterator[Callable[[wsgi.Environ], BlockingLimiter | None]]:
    with BlockingClient(settings) as client:
        limiter = client.limiter(Name("acme", name))
        yield lambda environ: None if environ["PATH_INFO"] == "/free" else limiter


@contextmanager
def werkzeug_serves(app: Any) -> Iterator[str]:
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def uvicorn_serves(app: Any) -> Iterator[str]:
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("serve", SERVED, ids=lambda serve: serve.__name__)
def test_an_application_sees_only_what_was_granted(settings: ClientSettings, serve: Serve) -> None:
    reached: list[str] = []
    with serve(settings, reached) as url, requests.Session() as session:
        answers = [
            session.post(f"{url}/{path}", data=b"x" * LARGE)
            for path in ("limited", "limited", "limited", "free")
        ]
        huge = session.post(f"{url}/limited", data=b"x" * HUGE)
    refused = [is_refusal(one.status_code, one.headers, one.content) for one in answers]
    assert refused[0] is refused[3] is False
    assert any(refused)
    assert reached == ["limited"] * refused[:3].count(False) + ["free"]
    assert (huge.status_code, "retry-after" in huge.headers) == (413, False)
    assert ": expected at most " in huge.text


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_name_or_token_at_fault_is_raised_and_a_refused_name_answered(status: int) -> None:
    class Refusing(Limiter):
        async def acquire(self, *_: Any, **__: Any) -> Any:
            raise QuestionRefused(status, "why")

    limiter = Refusing(Client(ClientSettings(when_away="open")), Name("acme", "web"), None)
    with nullcontext() if status == 403 else pytest.raises(QuestionRefused):
        assert refusal(await ask(limiter, "", 0.0))[::2] == (403, b'{"reason": "why"}')


async def test_what_is_no_http_request_passes_asgi(settings: ClientSettings) -> None:
    reached: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["type"])

    async def nothing(*_: Any) -> Any:
        raise AssertionError

    limited_app = LimitedApp(app, lambda _: pytest.fail("nobody is asked"))
    await limited_app({"type": "websocket", "path": "/", "headers": []}, nothing, nothing)
    assert reached == ["websocket"]


async def test_an_aiohttp_handler_sees_only_what_was_granted(settings: ClientSettings) -> None:
    reached: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response()

    async with Client(settings) as client:
        limiter = client.limiter(Name("acme", "web"))
        limits = limited(lambda request: None if request.path == "/free" else limiter)
        app = web.Application(middlewares=[limits])
        app.router.add_post("/{name}", handle)
        async with TestClient(TestServer(app)) as caller:
            answers = [
                await caller.post(path, data=b"x" * LARGE) for path in ("/a", "/a", "/a", "/free")
            ]
            refused = [is_refusal(one.status, one.headers, await one.read()) for one in answers]
            huge = await caller.post("/huge", data=b"x" * HUGE)
    assert any(refused[:3])
    assert (len(reached), huge.status) == (refused.count(False), 413)
