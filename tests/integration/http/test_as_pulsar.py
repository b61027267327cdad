"""The same bodies of resource groups get the same answers from the door and from a live Apache Pulsar.

Not covered: everything that `pulsar-admin` can say (tests/integration/pulsar_admin).
"""

import asyncio
import http.client
import json
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import pytest

from rgd.adapters.http.settings import HttpSettings
from tests.integration.http.door import open_door
from tests.support.pulsar_standalone import PulsarStandalone

pytestmark = pytest.mark.pulsar

GROUP = "/admin/v2/resourcegroups/rgd-compared"


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
