"""The admin API beside Pulsar's own: unchanged tools work, and the same requests get the same answers.

`pulsar-admin` (through pulsar-shell) speaks to the door; then the door and a live Apache Pulsar are
asked the same and their answers compared. Where Pulsar contradicts its own documentation the door is
right, and the difference stands here. Not covered: everything of `/admin/v2` that rgd does not have.
"""

import asyncio
import http.client
import json
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import pytest

from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tokens import Tokens
from rgd.ports.door import Scope, digest_of
from tests.integration.http.door import open_door
from tests.support.pulsar_standalone import PulsarStandalone, pulsar_shell

pytestmark = pytest.mark.pulsar

GROUP = "/admin/v2/resourcegroups/rgd-compared"
NAMESPACE = "/admin/v2/namespaces/public/default/resourcegroup"


class Failed(NamedTuple):
    """The reason that a command of pulsar-admin prints."""

    reason: str


MISSING = Failed("ResourceGroup does not exist")


def told_rates(messages: int, size: int, read_messages: int, read_size: int) -> dict[str, int]:
    return {
        "publishRateInMsgs": messages,
        "publishRateInBytes": size,
        "dispatchRateInMsgs": read_messages,
        "dispatchRateInBytes": read_size,
    }


async def test_an_unchanged_pulsar_admin_works() -> None:
    rates = told_rates(10, 1000, 5, -1)
    expected: list[tuple[str, object]] = [
        ("admin resourcegroups create rg-a -mp 10 -bp 1000", ""),
        ("admin resourcegroups update rg-a -md 5", ""),
        ("admin resourcegroups get rg-a", rates),
        ("admin namespaces set-resource-group acme/x -rgn rg-a", ""),
        ("admin namespaces get-resource-group acme/x", "rg-a"),
        ("admin namespaces set-resource-group acme/x -rgn nobody", MISSING),
        ("admin resourcegroups delete rg-a", Failed("ResourceGroup is in use")),
        ("admin namespaces remove-resource-group acme/x", ""),
        ("admin namespaces get-resource-group acme/x", ""),
        ("admin resourcegroups delete rg-a", ""),
        ("admin resourcegroups get rg-a", MISSING),
        ("admin resourcegroups list", "gold\nheavy\nidle\nstopped\ntrial\nwatched"),
        ("admin namespaces get-resource-group acme/never", Failed("Namespace does not exist")),
    ]
    commands = [command for command, _ in expected]
    tokens = Tokens({digest_of("secret"): frozenset({Scope.ADMIN})})
    settings = HttpSettings(port=0, tokens=tokens)
    async with open_door(settings) as door:
        printed = await asyncio.to_thread(
            pulsar_shell, commands, admin_url=door.url, token="secret"
        )

    for (command, told), answer in zip(expected, printed, strict=True):
        if isinstance(told, Failed):
            assert f"Reason: {told.reason}" in answer, command
        elif isinstance(told, dict):
            assert json.loads(answer) == told, command
        else:
            assert answer == told, command


class Told(NamedTuple):
    """What a server answered; no body where it is an error, whose words may differ."""

    status: int
    body: object


PUTS: list[object] = [
    {"publishRateInMsgs": 10},
    {"dispatchRateInBytes": 2048},
    {"publishRateInMsgs": None, "publishRateInBytes": 77},
    {"publishRateInMsgs": -5},
    {"publishRateInMsgs": "100"},
    {"publishRateInMsgs": " 101 "},
    {"publishRateInMsgs": 102.9},
    {"publishRateInMsgs": ""},
    {"publishRateInMsgs": 2_147_483_647},
    {"publishRateInMsgs": 2_147_483_648},
    {"publishRateInMsgs": "many"},
    {"publishRateInMsgs": True},
    {"publishRateInMsgs": [5]},
    {"publishRateInMsgs": {}},
    {"publishRateInBytes": 9_223_372_036_854_775_808},
    {"unknown": 1, "dispatchRateInMsgs": 6},
    {},
    b"{",
    b"[]",
    b"3",
]


async def test_the_same_puts_get_the_same_answers(apache_pulsar: PulsarStandalone) -> None:
    async with open_door(HttpSettings(port=0)) as door:
        for body in PUTS:
            for method, sent in (
                ("PUT", body if isinstance(body, bytes) else msgspec.json.encode(body)),
                ("GET", None),
            ):
                ours = await door.call(method, GROUP, sent)
                theirs = await asyncio.to_thread(ask, apache_pulsar.admin_url, method, GROUP, sent)
                assert _told(ours.status, ours.body) == theirs, (method, body)
    assert ask(apache_pulsar.admin_url, "DELETE", GROUP).status == 204


async def test_namespaces_are_attached_alike(apache_pulsar: PulsarStandalone) -> None:
    calls = [
        ("PUT", GROUP, b"{}"),
        ("POST", f"{NAMESPACE}/rgd-compared", None),
        ("GET", NAMESPACE, None),
        ("POST", f"{NAMESPACE}/nobody", None),
        ("GET", NAMESPACE, None),
        ("DELETE", NAMESPACE, None),
        ("GET", NAMESPACE, None),
        ("GET", "/admin/v2/namespaces/public/nowhere/resourcegroup", None),
        ("GET", "/admin/v2/namespaces/pub%20lic/default/resourcegroup", None),
        ("GET", "/admin/v2/namespaces/public/de%2Cfault/resourcegroup", None),
        ("DELETE", GROUP, None),
        ("GET", GROUP, None),
    ]
    async with open_door(HttpSettings(port=0)) as door:
        for method, path, body in calls:
            ours = await door.call(method, path, body)
            theirs = await asyncio.to_thread(ask, apache_pulsar.admin_url, method, path, body)
            assert _told(ours.status, ours.body) == theirs, (method, path)


async def test_where_pulsar_contradicts_its_documentation_the_door_is_right(
    apache_pulsar: PulsarStandalone,
) -> None:
    calls = [("PUT", GROUP, b"{}"), ("POST", f"{NAMESPACE}/rgd-compared", None)]
    undo = [("DELETE", NAMESPACE, None), ("DELETE", GROUP, None)]
    in_use = missing = empty = (0, 0)
    async with open_door(HttpSettings(port=0)) as door:

        async def both(method: str, path: str, body: bytes | None) -> tuple[int, int]:
            ours = await door.call(method, path, body)
            theirs = await asyncio.to_thread(ask, apache_pulsar.admin_url, method, path, body)
            return ours.status, theirs.status

        for call in calls:
            assert await both(*call) == (204, 204)
        in_use = await both("DELETE", GROUP, None)
        for call in undo:
            assert await both(*call) == (204, 204)
        missing = await both("DELETE", GROUP, None)
        empty = await both("PUT", GROUP, b"")

    assert {"in use": in_use, "missing": missing, "empty": empty} == {
        "in use": (409, 412),
        "missing": (404, 500),
        "empty": (400, 500),
    }


def ask(url: str, method: str, path: str, body: bytes | None = None) -> Told:
    """Ask a server without minding its status."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return _told(response.status, response.read())
    finally:
        connection.close()


def _told(status: int, body: bytes) -> Told:
    if status >= 400:
        return Told(status, None)
    if not body.startswith(b"{"):
        return Told(status, body.decode())
    # Pulsar repeats -5, the door says -1: unlimited both.
    return Told(status, {name: max(-1, rate) or -1 for name, rate in json.loads(body).items()})
