"""Tokens, scopes and bad certificates over a real socket.

Not covered: the tokens file (tests/unit/config), TLS (test_connections.py, test_credentials.py).
"""

import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tokens import Tokens
from rgd.errors import ConfigError
from rgd.ports.door import Scope, digest_of
from tests.integration.http.door import metrics, open_door
from tests.support.whole_daemon import HttpServer
from tests.unit.adapters.http.small_daemon import SmallDaemon

TOKENS = {scope.value: f"{scope}-token" for scope in Scope}
SECURED = HttpSettings(
    port=0,
    tokens=Tokens({digest_of(TOKENS[scope]): frozenset({scope}) for scope in Scope}),
)

CALLS: list[tuple[str, str, object, str]] = [
    ("POST", "/v1/acquire", {"group": "gold"}, "query"),
    ("POST", "/v1/settle", {"group": "gold"}, "query"),
    ("POST", "/v1/leases", {"group": "gold"}, "query"),
    ("POST", "/v1/leases/none/renew", {}, "query"),
    ("POST", "/v1/leases/none/release", {}, "query"),
    ("GET", "/v1/check?group=gold", None, "query"),
    ("GET", "/v1/check/below", None, "query"),
    ("GET", "/v1/groups", None, "read"),
    ("GET", "/v1/groups/gold", None, "read"),
    ("GET", "/v1/brokers", None, "read"),
    ("GET", "/metrics", None, "read"),
    ("GET", "/openapi.json", None, "read"),
    ("GET", "/admin/v2/resourcegroups", None, "read"),
    ("GET", "/admin/v2/resourcegroups/gold", None, "read"),
    ("GET", "/admin/v2/namespaces/acme/orders/resourcegroup", None, "read"),
    ("PUT", "/v1/groups/gold", {}, "admin"),
    ("PATCH", "/v1/groups/gold", {}, "admin"),
    ("GET", "/v1/explain?tenant=acme&namespace=orders", None, "read"),
    ("DELETE", "/v1/groups/idle", None, "admin"),
    ("PUT", "/admin/v2/resourcegroups/gold", {}, "admin"),
    ("DELETE", "/admin/v2/resourcegroups/idle", None, "admin"),
    ("POST", "/admin/v2/namespaces/acme/orders/resourcegroup/trial", None, "admin"),
    ("DELETE", "/admin/v2/namespaces/acme/orders/resourcegroup", None, "admin"),
]
BROKER_LIMIT = "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg"
CALLS.extend(
    (("POST", f"{BROKER_LIMIT}/7", None, "admin"), ("DELETE", BROKER_LIMIT, None, "admin"))
)
OPEN = ["/healthz", "/readyz"]

NAMESPACE = "/admin/v2/namespaces/acme/orders"
TOPIC = "/admin/v2/{}/acme/orders/eu"
QUOTA = {"policy": "producer_exception"}


def add_policy(path: str, body: object, read: str = "") -> None:
    """Add the three calls of a policy that is set, shown and taken away."""
    CALLS.extend(
        [
            ("GET", read or path, None, "read"),
            ("POST", path, body, "admin"),
            ("DELETE", path, None, "admin"),
        ]
    )


CALLS.extend(
    ("GET", f"/admin/v2/{name}", None, "read")
    for name in (
        "clusters",
        "brokers/configuration",
        "brokers/configuration/values",
        "brokers/configuration/runtime",
        "tenants",
        "namespaces/acme",
        "namespaces/acme/orders",
    )
)
CALLS.append(("GET", "/admin/v2/brokers/backlog-quota-check", None, "admin"))
BACKLOG: dict[str, list[object]] = {"ledgers": [], "subscriptions": []}
UNKNOWN = (
    "non-persistent/acme/orders/eu/stats",
    "/partitioned-stats",
    "/none/renew",
    "/none/release",
    "/check/below",
    # This door has no usage log.
    "/log/entries",
    "/log/cursors",
    "/cursors/nightly",
)
TOPIC_BACKLOG = "/v1/topics/acme/orders/eu/backlog"
EVICTED = "persistent://acme/orders/eu"
CALLS.extend(
    [
        ("PUT", TOPIC_BACKLOG, BACKLOG, "query"),
        ("DELETE", TOPIC_BACKLOG, None, "query"),
        ("GET", TOPIC_BACKLOG, None, "read"),
        ("POST", "/v1/backlog", [], "query"),
        ("GET", "/v1/evictions", None, "read"),
        ("GET", "/v1/log/entries", None, "read"),
        ("GET", "/v1/log/cursors", None, "read"),
        ("PUT", "/v1/log/cursors/nightly", {"index": 0}, "admin"),
        ("DELETE", "/v1/log/cursors/nightly", None, "admin"),
        ("POST", "/v1/evictions", {"topic": EVICTED, "subscription": "all"}, "query"),
    ]
)
CALLS.extend(
    ("GET", f"/admin/v2/{domain}/acme/orders/eu/{stats}", None, "read")
    for domain in ("persistent", "non-persistent")
    for stats in ("stats", "partitioned-stats")
)
for place in (NAMESPACE, TOPIC.format("persistent"), TOPIC.format("non-persistent")):
    for rate in ("dispatchRate", "subscriptionDispatchRate", "publishRate"):
        add_policy(f"{place}/{rate}", {})
    add_policy(f"{place}/backlogQuota", QUOTA, read=f"{place}/backlogQuotaMap")
for place in (TOPIC.format("persistent"), TOPIC.format("non-persistent")):
    add_policy(f"{place}/sub/dispatchRate", {})
for place in ("/admin/v2/tenants/acme", *map(TOPIC.format, ("persistent", "non-persistent"))):
    CALLS.append(("GET", f"{place}/resourcegroup", None, "read"))
    CALLS.append(("POST", f"{place}/resourcegroup/trial", None, "admin"))
    CALLS.append(("DELETE", f"{place}/resourcegroup", None, "admin"))


@pytest.mark.parametrize(("method", "path", "body", "scope"), CALLS)
async def test_a_call_needs_its_scope(method: str, path: str, body: object, scope: str) -> None:
    async with open_door(SECURED) as door:
        await door.call("PUT", TOPIC_BACKLOG, BACKLOG, token=TOKENS["query"])
        without = await door.call(method, path, body)
        assert without.status == 401
        assert without.headers["WWW-Authenticate"] == 'Bearer realm="rgd"'

        for held, token in TOKENS.items():
            answer = await door.call(method, path, body, token=token)
            if held in {scope, "admin"}:
                # Nothing is known of these, or they do not say enough.
                is_unknown = path.endswith(UNKNOWN) or (method, path) == ("POST", "/v1/evictions")
                assert answer.status in ({400, 404} if is_unknown else {200, 204})
            else:
                assert answer.status == 403
                assert answer.reason == f"this call needs a token with the scope {scope}"
                assert f'scope="{scope}"' in answer.headers["WWW-Authenticate"]


async def test_every_call_stands_in_the_table_above() -> None:
    async with open_door(SECURED) as door:
        scoped = {
            # Of those that take every method, one stands for all.
            ("GET" if endpoint.method == "*" else endpoint.method, endpoint.scope.value)
            for endpoint in door.server.endpoints
            if endpoint.scope is not None
        }
        count = sum(endpoint.scope is not None for endpoint in door.server.endpoints)
        free = sorted(endpoint.path for endpoint in door.server.endpoints if endpoint.scope is None)

    assert scoped == {(method, scope) for method, _, _, scope in CALLS}
    assert count == len(CALLS)
    assert free == OPEN


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer query-token-and-more",
        "Basic cXVlcnk6dG9rZW4=",
        "query-token",
        "Bearer query-token, Bearer admin-token",
        "Bearer \xff",
    ],
)
async def test_what_is_no_known_token_is_401(header: str) -> None:
    async with open_door(SECURED) as door:
        answer = await door.raw(
            b"GET /v1/brokers HTTP/1.1\r\nHost: x\r\nAuthorization: "
            + header.encode("latin-1")
            + b"\r\n\r\n"
        )

    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="rgd"')


async def test_a_refused_call_changes_nothing_and_asks_nobody() -> None:
    async with open_door(SECURED) as door:
        before = door.daemon.snapshot()
        await door.call("PUT", "/v1/groups/gold", {}, token=TOKENS["read"])
        await door.call("POST", "/v1/acquire", {"group": "gold"}, token=TOKENS["read"])

        assert door.daemon.snapshot() is before
        assert door.daemon.asked == []


async def test_tokens_are_never_logged_or_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_door(SECURED) as door:
        door.daemon.broken = RuntimeError("boom")
        answers = [
            await door.call("POST", "/v1/acquire", {"group": "gold"}, token=token)
            for token in (*TOKENS.values(), "wrong-secret")
        ]

    assert [answer.status for answer in answers] == [500, 403, 500, 401]
    shown = caplog.text + repr(SECURED) + "".join(answer.body.decode() for answer in answers)
    for token in (*TOKENS.values(), "wrong-secret"):
        assert token not in shown


PEM = Path("cert.pem")


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("listen", HttpSettings(host="0.0.0.0")),
        # Certificates alone do not replace tokens.
        ("listen", HttpSettings(host="0.0.0.0", tls_cert=PEM, tls_key=PEM)),
        ("probe_listen", HttpSettings(probe_address=("0.0.0.0", 7790))),
    ],
)
def test_a_server_that_strangers_could_reach_is_not_made(key: str, settings: HttpSettings) -> None:
    with pytest.raises(ConfigError, match=rf"http\.{key}: .*http\.tokens_file.*--insecure"):
        HttpServer(SmallDaemon(), settings, metrics=metrics)


@pytest.mark.parametrize("setting", ["tls_cert", "tls_client_ca"])
@pytest.mark.parametrize("content", [None, b"no certificate"])
async def test_a_certificate_that_cannot_be_used_is_named(
    tmp_path: Path, certificate: tuple[Path, Path], setting: str, content: bytes | None
) -> None:
    bad = tmp_path / "bad.pem"
    if content is not None:
        bad.write_bytes(content)
    given: dict[str, Any] = {"tls_cert": certificate[0], "tls_key": certificate[1]} | {setting: bad}
    server = HttpServer(SmallDaemon(), HttpSettings(port=0, **given), metrics=metrics)

    with pytest.raises(ConfigError, match=r"expected.* PEM") as caught:
        await server.open()

    assert [fault.key for fault in caught.value.faults] == [f"http.{setting}"]


OWN = "127.0.0.1:7700"


@pytest.mark.parametrize(
    ("told", "status"),
    [
        *(
            ({"Host": host}, 200)
            for host in (OWN, "[::1]:7700", "LocalHost", "a.localhost:7700", "rgd:7700")
        ),
        ({"Host": OWN, "Origin": f"http://{OWN}"}, 200),
        ({"Host": OWN, "Origin": "http://127.0.0.1:8080"}, 403),
        ({"Host": OWN, "Origin": "null"}, 403),
        ({"Host": "evil.example:7700"}, 403),
        ({"Host": "evil.example:7700", "Origin": "http://evil.example:7700"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
    ],
)
async def test_without_tokens_a_page_of_another_site_asks_for_nothing(
    told: dict[str, str], status: int, tmp_path: Path
) -> None:
    async with open_door(HttpSettings(port=0, unix_socket=tmp_path / "s")) as door:
        for method, path, body, scope in CALLS[:1] + CALLS[7:8]:
            assert (await door.send(method, path, body, headers=told)).status == status, scope
        # Proxies pass on what their callers said.
        for path in ("/v1/check?group=gold", "/healthz", "/metrics"):
            assert (await door.send("GET", path, headers=told)).status == 200
        # No name leads to a socket's file.
        connector = aiohttp.UnixConnector(str(tmp_path / "s"))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get("http://x/v1/groups", headers={"Host": told["Host"]}) as local,
        ):
            assert local.status == 200
    async with open_door(SECURED) as door:
        answer = await door.send("GET", "/v1/groups", token=TOKENS["read"], headers=told)
        assert answer.status == 200
