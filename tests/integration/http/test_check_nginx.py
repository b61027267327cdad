"""`/v1/check` behind a real nginx, configured by the snippet of docs/gateways.md.

Not covered: what can be asked (test_check.py).
"""

import asyncio
import re
import socket as socketlib
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer

from rgd.adapters.http.settings import HttpSettings
from tests.integration.http.door import Door, open_door
from tests.support import components

pytestmark = pytest.mark.e2e

SNIPPET = Path(__file__).parents[3] / "docs" / "gateways.md"

FRAME = """\
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder};
    proxy_temp_path {folder};
    fastcgi_temp_path {folder};
    uwsgi_temp_path {folder};
    scgi_temp_path {folder};
{servers}
}}
"""


@pytest.fixture
async def behind() -> AsyncIterator[tuple[BaseTestServer, list[str]]]:
    """What nginx protects; tells who came through."""
    seen: list[str] = []

    async def serve(request: web.Request) -> web.Response:
        seen.append(request.path_qs)
        return web.Response(text="passed")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    async with TestServer(app) as site:
        yield site, seen


def snippets() -> list[str]:
    """What the page has for nginx: a configuration, the lines that let requests pass without a daemon, names from requests."""
    return re.findall(r"```nginx\n(.*?)```", SNIPPET.read_text(), re.DOTALL)


@pytest.fixture
def socket(door: Door, behind: tuple[BaseTestServer, list[str]], tmp_path: Path) -> Iterator[Path]:
    """Where an nginx listens that asks the door; it runs until the test ends."""
    with run_nginx(snippets()[0], door.server.port, behind[0], tmp_path) as listening:
        yield listening


@contextmanager
def run_nginx(
    snippet: str, port: int | None, site: BaseTestServer, tmp_path: Path
) -> Iterator[Path]:
    """Where an nginx with this configuration listens.

    Args:
        snippet: as on the page.
        port: of the daemon that it asks.
        site: what it protects.
        tmp_path: its folder.
    """
    nginx = components.nginx()
    listening = tmp_path / "nginx.sock"
    servers = (
        snippet.replace("127.0.0.1:7700", f"127.0.0.1:{port}")
        .replace("127.0.0.1:8081", f"127.0.0.1:{site.port}")
        .replace("listen 8080", f"listen unix:{listening}")
        .replace("namespace=orders", "namespace=trial")
    )
    config = tmp_path / "nginx.conf"
    config.write_text(FRAME.format(folder=tmp_path, servers=servers))
    command = [str(nginx), "-p", str(tmp_path), "-c", str(config)]
    # It returns once the daemon that it leaves behind listens.
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    try:
        yield listening
    finally:
        subprocess.run([*command, "-s", "stop"], capture_output=True, timeout=60, check=True)


async def test_nginx_lets_pass_what_the_quota_has_and_answers_429_beyond(
    door: Door, behind: tuple[BaseTestServer, list[str]], socket: Path
) -> None:
    seen = behind[1]
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as session:
        # The group trial has 40 messages a second: a full bucket has 10.
        answers, headers = [], None
        for at in range(12):
            cheating = {"X-Rgd-Tenant": "nobody", "X-Rgd-Messages": "0"}
            url = f"http://nginx/orders?at={at}&messages=0"
            async with session.post(url, data=b"a body", headers=cheating) as response:
                answers.append(response.status)
                headers = response.headers
        assert answers == [200] * 10 + [429] * 2
        assert seen == [f"/orders?at={at}&messages=0" for at in range(10)]
        assert headers is not None
        assert headers["Retry-After"] == "1"
        assert headers["RateLimit"] == '"trial/publish/messages";r=0;t=1'
        door.daemon.advance(25)
        async with session.get("http://nginx/orders") as response:
            assert (response.status, await response.text()) == (200, "passed")


@pytest.mark.parametrize(
    ("is_open", "status"),
    [pytest.param(False, 500, id="closed"), pytest.param(True, 200, id="open")],
)
async def test_without_a_daemon_nginx_does_what_the_page_says(
    behind: tuple[BaseTestServer, list[str]], tmp_path: Path, *, is_open: bool, status: int
) -> None:
    configuration, lines, _ = snippets()
    if is_open:
        asks = "proxy_pass http://rgd"
        configuration = configuration.replace(asks, lines + asks).replace(
            "location @limited", "location @open { return 204; }\n    location @limited"
        )
    # A port that is bound and not listened on refuses every connection.
    with closing(socketlib.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with run_nginx(configuration, port, behind[0], tmp_path) as listening:
            connector = aiohttp.UnixConnector(str(listening))
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.get("http://nginx/orders") as response,
            ):
                assert response.status == status
    assert len(behind[1]) == is_open


async def test_nginx_takes_the_names_from_the_request(
    door: Door, behind: tuple[BaseTestServer, list[str]], tmp_path: Path
) -> None:
    """And callers can neither take another's name nor ask for less."""
    with run_nginx(snippets()[2], door.server.port, behind[0], tmp_path) as listening:
        connector = aiohttp.UnixConnector(str(listening))
        async with aiohttp.ClientSession(connector=connector) as session:

            async def status(path: str, **headers: str) -> int:
                named = {name.replace("_", "-"): value for name, value in headers.items()}
                async with session.get(f"http://nginx{path}", headers=named) as response:
                    return response.status

            free = {"X_Rgd_Messages": "0", "X_Rgd_Tenant": "nobody"}
            asked = [
                await status(f"/trial/{at}?messages=0", X_Tenant="acme", **free) for at in range(11)
            ]
            assert asked == [200] * 10 + [429]
            # Another namespace, another tenant, and names that are none.
            assert await status("/other-things", X_Tenant="acme") == 200
            for tenant in ("globex", "acme&messages=0", "ACME/..", ""):
                assert await status("/trial", X_Tenant=tenant) == 200
            # By hand, because clients decode the path.
            reader, writer = await asyncio.open_unix_connection(listening)
            writer.write(b"GET /%74rial?x HTTP/1.1\r\nHost: nginx\r\nX-Tenant: acme\r\n\r\n")
            assert b" 429 " in await reader.readline()
            writer.close()
            assert await status("/Trial", X_Tenant="acme") == 200
    names = [request.namespace for request in door.daemon.asked]
    assert names == [
        *["acme/trial"] * 11,
        "acme/other-things",
        "globex/trial",
        *["anonymous/trial"] * 3,
        "acme/trial",
        "acme/other",
    ]


async def test_what_traefik_and_envoy_send_is_understood() -> None:
    async with open_door(HttpSettings(port=0)) as door:
        # Traefik asks with GET and says in headers what was asked of it.
        forwarded = {
            "X-Forwarded-Method": "POST",
            "X-Forwarded-Uri": "/orders?messages=0",
            "X-Forwarded-Host": "shop",
        }
        traefik = "/v1/check?tenant=acme&namespace=trial&messages=10"
        assert (await door.send("GET", traefik, headers=forwarded)).status == 200
        # Envoy keeps the method, appends path and query, and sends no body.
        # Both may be told names by headers.
        named = {"X-Rgd-Tenant": "acme", "X-Rgd-Namespace": "trial", "Content-Length": "0"}
        envoy = await door.send("POST", "/v1/check/orders/1?messages=0", headers=named)
        assert envoy.status == 429
        assert envoy.headers["Retry-After"] == "1"
