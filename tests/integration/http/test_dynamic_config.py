"""`brokers/configuration`: the broker's dispatch limit as Pulsar's dynamic configuration.

Not covered: pulsar-admin itself, beside a stock Pulsar (tests/integration/pulsar_admin).
"""

import pytest

from rgd.core.policies.model import LocalLimit, Rates
from rgd.core.policies.records import LIMIT_BROKER
from rgd.core.units import MILLI
from tests.integration.http.door import Door

ROOT = "/admin/v2/brokers/configuration"
MESSAGES, BYTES = "dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte"
READ = {
    "tenant": "acme",
    "namespace": "free",
    "topic": "eu",
    "subscription": "audit",
    "kind": "dispatch",
}


async def values(door: Door) -> object:
    return (await door.call("GET", f"{ROOT}/values")).json


async def test_a_setting_is_in_force_at_once_and_until_it_is_taken_away(door: Door) -> None:
    assert await values(door) == {}
    changed = await door.call("POST", f"{ROOT}/{MESSAGES}/200")
    assert (changed.status, changed.body) == (200, b"")
    assert await values(door) == {MESSAGES: "200"}
    answer = (await door.call("POST", "/v1/acquire", {**READ, "messages": 100})).json
    assert (answer["messages"], answer["limited_by"]) == (50, "broker")
    runtime = (await door.call("GET", f"{ROOT}/runtime")).json
    assert (runtime[MESSAGES], runtime[BYTES]) == ("200", "0")
    for _ in range(2):
        assert (await door.call("DELETE", f"{ROOT}/{MESSAGES}")).status == 200
        assert await values(door) == {}
    answer = (await door.call("POST", "/v1/acquire", {**READ, "messages": 100})).json
    assert answer == {"granted": True, "messages": 100, "bytes": 0, "governed": False}


async def test_a_setting_leaves_the_other_dimension_and_publishing_alone(door: Door) -> None:
    publish = Rates(5 * MILLI)
    await door.daemon.change(LIMIT_BROKER, lambda _: LocalLimit(publish=publish))
    await door.call("POST", f"{ROOT}/{MESSAGES}/7")
    await door.call("POST", f"{ROOT}/{BYTES}/3000000000")
    limit = LocalLimit(publish, Rates(7 * MILLI, 3_000_000_000 * MILLI))
    assert door.daemon.value(LIMIT_BROKER) == limit
    assert await values(door) == {MESSAGES: "7", BYTES: "3000000000"}
    await door.call("POST", f"{ROOT}/{MESSAGES}/0")
    assert await values(door) == {BYTES: "3000000000"}
    await door.call("DELETE", f"{ROOT}/{BYTES}")
    assert door.daemon.value(LIMIT_BROKER) == LocalLimit(publish=publish)
    await door.daemon.change(LIMIT_BROKER, lambda _: None)
    await door.call("POST", f"{ROOT}/{MESSAGES}/-5")
    assert door.daemon.value(LIMIT_BROKER) is None


async def test_only_the_two_settings_are_there(door: Door) -> None:
    assert (await door.call("GET", ROOT)).json == [MESSAGES, BYTES]
    for method, path, word in (
        ("POST", f"{ROOT}/maxTopicsPerNamespace/5", "update"),
        ("DELETE", f"{ROOT}/clusterName", "delete"),
    ):
        refused = await door.call(method, path)
        assert (refused.status, refused.reason) == (412, f"Can't {word} non-dynamic configuration")


@pytest.mark.parametrize("value", ["many", "1.5", "2147483648", "%20"])
async def test_a_value_that_pulsar_would_pass_over_is_refused(door: Door, value: str) -> None:
    await door.call("POST", f"{ROOT}/{MESSAGES}/7")
    answer = await door.call("POST", f"{ROOT}/{MESSAGES}/{value}")
    assert answer.status == 400
    assert answer.reason.startswith(f"{MESSAGES}: expected an integer from -2147483648 to")
    assert await values(door) == {MESSAGES: "7"}
