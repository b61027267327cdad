"""Resource groups in Pulsar's words: what is merged, kept and shown.

Not covered: paths and codes (tests/integration/http), and pulsar-admin itself.
"""

import asyncio
from typing import Any

import msgspec
import pytest

from rgd.adapters.http.pulsar_admin.resource_groups import ResourceGroupCalls, resource_group_of
from rgd.adapters.http.reply import Call
from rgd.core.policies.model import Group, Limit
from tests.unit.adapters.http.small_daemon import SmallDaemon, rates


@pytest.fixture
def daemon() -> SmallDaemon:
    return SmallDaemon()


@pytest.fixture
def admin(daemon: SmallDaemon) -> ResourceGroupCalls:
    return ResourceGroupCalls(daemon, asyncio.Lock())


async def put(admin: ResourceGroupCalls, name: str, body: object) -> None:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    assert (await admin.put(Call({"group": name}, {}, raw))).status == 204


async def get(admin: ResourceGroupCalls, name: str) -> Any:
    return msgspec.json.decode((await admin.get(Call({"group": name}, {}, b""))).body)


@pytest.mark.parametrize(
    ("said", "rate"),
    [
        pytest.param("100", 100, id="a number in quotes"),
        pytest.param(None, 1000, id="null keeps what is"),
    ],
)
async def test_numbers_are_read_as_jackson_reads_them(
    admin: ResourceGroupCalls, said: object, rate: int
) -> None:
    await put(admin, "gold", {"publishRateInMsgs": said})

    assert (await get(admin, "gold"))["publishRateInMsgs"] == rate


def test_a_fraction_is_shown_rounded_up_and_never_as_unlimited() -> None:
    shown = resource_group_of(Group("slow", Limit(rates(0.2, 1.5))))

    assert (shown.publish_rate_in_msgs, shown.publish_rate_in_bytes) == (1, 2)
