"""Resource groups in Pulsar's words: what is merged, kept and shown.

Not covered: paths and codes (tests/integration/http), and pulsar-admin itself.
"""

import asyncio
from typing import Any

import msgspec
import pytest

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.pulsar_admin.resource_groups import ResourceGroupCalls, resource_group_of
from rgd.adapters.http.reply import Call
from rgd.adapters.http.turns import Turns
from rgd.core.policies.model import Group, Limit, SharePolicyName
from rgd.core.policies.records import GROUP, Change
from tests.unit.adapters.http.small_daemon import SmallDaemon, rates

INT32 = "expected an integer from -2147483648 to 2147483647"
INT64 = "expected an integer from -9223372036854775808 to 9223372036854775807"


@pytest.fixture
def daemon() -> SmallDaemon:
    return SmallDaemon()


@pytest.fixture
def admin(daemon: SmallDaemon) -> ResourceGroupCalls:
    return ResourceGroupCalls(daemon, asyncio.Lock(), Turns())


async def put(admin: ResourceGroupCalls, name: str, body: object) -> None:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    assert (await admin.put(Call({"group": name}, {}, raw))).status == 204


async def get(admin: ResourceGroupCalls, name: str) -> Any:
    return msgspec.json.decode((await admin.get(Call({"group": name}, {}, b""))).body)


def told(messages: int, size: int, read_messages: int, read_size: int) -> dict[str, int]:
    return {
        "publishRateInMsgs": messages,
        "publishRateInBytes": size,
        "dispatchRateInMsgs": read_messages,
        "dispatchRateInBytes": read_size,
    }


async def test_a_put_keeps_what_it_does_not_say(admin: ResourceGroupCalls) -> None:
    await put(admin, "gold", {"publishRateInMsgs": 7, "dispatchRateInMsgs": None})

    assert await get(admin, "gold") == told(7, 5_000_000, 2000, -1)


async def test_a_put_leaves_alone_what_pulsar_cannot_say(
    admin: ResourceGroupCalls, daemon: SmallDaemon
) -> None:
    group = Group("odd", Limit(rates(0.5)), blocked=True, shadow=True, policy=SharePolicyName.STEAL)
    await daemon.change(GROUP + "odd", lambda _known: group)

    await put(admin, "odd", {"dispatchRateInBytes": 9})

    assert daemon.snapshot().groups["odd"] == Group(
        "odd",
        Limit(rates(0.5), rates(None, 9)),
        blocked=True,
        shadow=True,
        policy=SharePolicyName.STEAL,
    )


@pytest.mark.parametrize(
    ("said", "rate"),
    [
        pytest.param("100", 100, id="a number in quotes"),
        pytest.param(" 100 ", 100, id="with spaces"),
        pytest.param("+100", 100, id="with a sign"),
        pytest.param(100.9, 100, id="a fraction is cut off"),
        pytest.param("", 1000, id="an empty text keeps what is"),
        pytest.param(None, 1000, id="null keeps what is"),
        pytest.param(2_147_483_647, 2_147_483_647, id="the largest int"),
    ],
)
async def test_numbers_are_read_as_jackson_reads_them(
    admin: ResourceGroupCalls, said: object, rate: int
) -> None:
    await put(admin, "gold", {"publishRateInMsgs": said})

    assert (await get(admin, "gold"))["publishRateInMsgs"] == rate


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"publishRateInMsgs": "many"}, f"publishRateInMsgs: {INT32}"),
        ({"publishRateInMsgs": True}, f"publishRateInMsgs: {INT32}"),
        ({"publishRateInMsgs": [5]}, f"publishRateInMsgs: {INT32}"),
        ({"publishRateInMsgs": 2_147_483_648}, f"publishRateInMsgs: {INT32}"),
        ({"dispatchRateInMsgs": "99999999999"}, f"dispatchRateInMsgs: {INT32}"),
        ({"dispatchRateInBytes": 9_223_372_036_854_775_808}, f"dispatchRateInBytes: {INT64}"),
        ({"publishRateInBytes": 1e30}, f"publishRateInBytes: {INT64}"),
        ({"publishRateInBytes": "1" * 50}, f"publishRateInBytes: {INT64}"),
        (b'{"publishRateInBytes":' + b"1" * 5000 + b"}", f"publishRateInBytes: {INT64}"),
        (b"", "body: expected JSON"),
        (b"null", "body: expected a JSON object"),
        (b"[]", "body: expected a JSON object"),
    ],
)
async def test_a_wrong_rate_is_named(admin: ResourceGroupCalls, body: object, reason: str) -> None:
    with pytest.raises(BadBody) as caught:
        await put(admin, "gold", body)

    assert str(caught.value).startswith(reason)
    assert await get(admin, "gold") == told(1000, 5_000_000, 2000, -1)


def test_a_fraction_is_shown_rounded_up_and_never_as_unlimited() -> None:
    shown = resource_group_of(Group("slow", Limit(rates(0.2, 1.5))))

    assert (shown.publish_rate_in_msgs, shown.publish_rate_in_bytes) == (1, 2)


async def test_a_put_is_merged_into_what_another_daemon_wrote_meanwhile(
    admin: ResourceGroupCalls, daemon: SmallDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = daemon.change

    async def late_write(key: str, change: Change) -> None:
        theirs = Group("new", Limit(dispatch=rates(2)))
        await write(key, lambda _known: theirs)
        await write(key, change)

    monkeypatch.setattr(daemon, "change", late_write)
    await put(admin, "new", {"publishRateInMsgs": 1})

    assert await get(admin, "new") == told(1, -1, 2, -1)
