"""Something else than a daemon answers: nothing of it is believed, and it costs no memory.

Real servers on loopback. Not covered: a daemon that is away (test_clients.py).
"""

import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from rgd.client import Client, ClientSettings, Name, Source
from rgd.client.answers import AMOUNT_MAX
from rgd.client.transport import ANSWER_BYTES_MAX, NOTHING, Transport

ORDERS = Name("acme", "orders")
PATIENT_S = 120.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(handler: Handler) -> AsyncIterator[str]:
    """A server that answers everything alike; its URL."""
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as made:
        yield f"http://127.0.0.1:{made.port}"


def settings_of(url: str) -> ClientSettings:
    return ClientSettings(when_away="closed", url=url, timeout_s=PATIENT_S)


def answering(item: Any) -> Handler:
    """Answers each question with this."""

    async def handler(request: web.Request) -> web.Response:
        return web.json_response([item] * len(json.loads(await request.read())))

    return handler


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"granted": True, "messages": -5}, id="negative"),
        pytest.param({"granted": True, "bytes": -1}, id="negative-bytes"),
        pytest.param({"granted": True, "messages": 6}, id="more-than-asked"),
        pytest.param({"granted": True, "messages": 5, "bytes": 1}, id="bytes-not-asked"),
        pytest.param({"granted": True, "messages": AMOUNT_MAX + 1}, id="beyond-int64"),
        pytest.param({"granted": True, "messages": 1.5}, id="no-whole-number"),
        pytest.param({"granted": False, "retry_after_ms": -1}, id="wait-negative"),
        pytest.param({"granted": "yes"}, id="no-boolean"),
        pytest.param({}, id="no-answer"),
    ],
)
async def test_an_answer_that_no_daemon_gives_is_none(item: dict[str, Any]) -> None:
    async with server(answering(item)) as url, Client(settings_of(url)) as client:
        answer = await client.limiter(ORDERS).acquire(5)
    assert (answer.source, answer.granted, answer.messages) == (Source.AWAY, False, 0)


NESTED = b"[" * 5000 + b"]" * 5000


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'[{"granted":false,"group":"\xff"}]', id="no-utf8"),
        pytest.param(b'{"group":"\xff"}', id="no-utf8-leased"),
        pytest.param(b'[{"granted":true,"x":' + NESTED + b"}]", id="nested"),
        pytest.param(b'{"x":' + NESTED + b"}", id="nested-leased"),
    ],
)
@pytest.mark.parametrize("leased", [False, True])
@pytest.mark.parametrize("status", [200, 302])
async def test_what_cannot_be_decoded_and_a_redirect_are_no_answer(
    status: int, leased: bool, body: bytes
) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body)

    async with server(handler) as url:
        # As from a daemon that is down, the wait is for it to come back.
        timeout_s = PATIENT_S if status == 200 else 0.3
        async with Client(replace(settings_of(url), timeout_s=timeout_s)) as client:
            assert (await client.limiter(ORDERS, leased=leased).acquire()).source == Source.AWAY


async def test_a_compressed_answer_is_neither_asked_for_nor_opened() -> None:
    sent = gzip.compress(bytes(1 << 20))
    asked_for: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        asked_for.append(request.headers.get("Accept-Encoding"))
        return web.Response(body=sent, headers={"Content-Encoding": "gzip"})

    async with server(handler) as url, Transport(settings_of(url)) as calls:
        assert await calls.call("/v1/acquire", b"[]") == (200, sent)
    assert asked_for == ["identity"]


async def test_an_answer_without_an_end_is_not_read_to_it() -> None:
    sent = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(1 << 20))
            sent += 1 << 20

    async with server(handler) as url, Transport(settings_of(url)) as calls:
        assert await calls.call("/v1/acquire", b"[]") == NOTHING
    assert sent < 4 * ANSWER_BYTES_MAX
