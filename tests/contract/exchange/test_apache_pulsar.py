"""What only Apache Pulsar has of the exchange's world: namespaces, retention, compaction.

Not covered here: tokens and TLS (tests/integration/exchange/test_authentication.py).
"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.adapters.stock.namespaces import COMPACTION_THRESHOLD_BYTES
from rgd.ports.exchange import ExchangeDown
from tests.contract.exchange.backends import NAMESPACE, PATIENT, TIMEOUT_S, learn, lost, read
from tests.support.exchanges import hears_itself, opened
from tests.support.pulsar_operator import Operator, ensure_namespace
from tests.support.pulsar_standalone import PulsarStandalone, pulsar_shell

pytestmark = pytest.mark.pulsar


#: So Pulsar deletes a topic a second, not a minute, after its last reader has left.
IMPATIENT = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 1,
    "deleteWhileInactive": True,
}


async def test_a_missing_namespace_is_reported_with_the_commands_that_make_it(
    apache_pulsar: PulsarStandalone,
) -> None:
    topics = "non-persistent://nobody/nothing/usage", "persistent://nobody/nothing/policies"
    member = PulsarExchange(apache_pulsar.service_url, topics[0], settings=PATIENT)
    table = PulsarPolicyStore(apache_pulsar.service_url, topics[1], settings=PATIENT)
    for joining in (member, table):
        with pytest.raises(ExchangeDown, match=r"exchange\.admin_url") as raised:
            await joining.open()
        for command in (
            "pulsar-admin tenants create nobody",
            "pulsar-admin namespaces create nobody/nothing",
            "pulsar-admin namespaces set-retention nobody/nothing --size -1 --time -1",
            "pulsar-admin namespaces set-compaction-threshold nobody/nothing --threshold 1M",
            "set-auto-topic-creation nobody/nothing --enable --type non-partitioned",
        ):
            assert command in str(raised.value)
        await joining.close()


async def test_the_commands_that_are_reported_make_the_namespace(
    apache_pulsar: PulsarStandalone,
) -> None:
    topic = "non-persistent://by-hand/rgd/usage"
    member = PulsarExchange(apache_pulsar.service_url, topic, settings=PATIENT)
    with pytest.raises(ExchangeDown) as raised:
        await member.open()
    commands = [
        line.strip().removeprefix("pulsar-")
        for line in str(raised.value).splitlines()
        if line.strip().startswith("pulsar-admin")
    ]
    await asyncio.to_thread(pulsar_shell, commands, admin_url=apache_pulsar.admin_url)
    await member.open()
    await member.close()
    retention = await Operator(apache_pulsar).get("namespaces/by-hand/rgd/retention")
    assert retention == {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    threshold = await Operator(apache_pulsar).get("namespaces/by-hand/rgd/compactionThreshold")
    assert threshold == COMPACTION_THRESHOLD_BYTES


async def test_daemons_that_start_together_make_tenant_and_namespace_once(
    apache_pulsar: PulsarStandalone,
) -> None:
    namespace = "fresh/rgd"
    url = f"{apache_pulsar.admin_url}/"
    await asyncio.gather(*(ensure_namespace(url, namespace) for _ in range(8)))
    await ensure_namespace(url, namespace)
    retention = await Operator(apache_pulsar).get(f"namespaces/{namespace}/retention")
    assert retention == {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    threshold = await Operator(apache_pulsar).get(f"namespaces/{namespace}/compactionThreshold")
    assert threshold == COMPACTION_THRESHOLD_BYTES
    topic = f"persistent://{namespace}/policies"
    table = PulsarPolicyStore(apache_pulsar.service_url, topic, settings=PATIENT)
    assert await read(table) == {}
    await table.close()


async def test_a_namespace_that_goes_away_is_made_again_by_a_running_member(
    apache_pulsar: PulsarStandalone,
) -> None:
    namespace = "vanishing/rgd"
    topic = f"non-persistent://{namespace}/usage"

    async def prepare() -> None:
        await ensure_namespace(apache_pulsar.admin_url, namespace)

    await prepare()
    impatient = replace(PATIENT, send_timeout_ms=500)
    member = PulsarExchange(apache_pulsar.service_url, topic, settings=impatient, prepare=prepare)
    await member.open()
    await hears_itself(member, b"before")
    await Operator(apache_pulsar).call("DELETE", f"namespaces/{namespace}?force=true")
    await hears_itself(member, b"after")
    assert member.attempts
    await member.close()
    assert namespace in await Operator(apache_pulsar).get("namespaces/vanishing")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("PUT", "{topic}/unload", id="unloaded"),
        pytest.param("DELETE", "{topic}?force=true", id="deleted"),
    ],
)
async def test_a_topic_that_an_operator_takes_away_while_it_is_read_is_joined_again(
    apache_pulsar: PulsarStandalone, method: str, path: str
) -> None:
    await ensure_namespace(apache_pulsar.admin_url, NAMESPACE)
    topic = f"non-persistent://{NAMESPACE}/taken-by-{method.lower()}"
    member = PulsarExchange(apache_pulsar.service_url, topic, settings=PATIENT)
    await member.open()
    for turn in range(3):
        await hears_itself(member, b"%d" % turn)
        await Operator(apache_pulsar).call(method, path.format(topic=topic.replace("://", "/")))
    await hears_itself(member, b"after")
    await member.close()


async def test_a_table_whose_topic_is_unloaded_is_read_again_and_lacks_nothing(
    apache_pulsar: PulsarStandalone,
) -> None:
    await ensure_namespace(apache_pulsar.admin_url, NAMESPACE)
    topic = f"persistent://{NAMESPACE}/unloaded-table"
    store = PulsarPolicyStore(apache_pulsar.service_url, topic, settings=PATIENT)
    await store.open()
    await store.put("gold", b"1")
    await learn(store, 1)
    await Operator(apache_pulsar).call("PUT", f"{topic.replace('://', '/')}/unload")
    await lost(store)
    assert dict(await opened(store.open)) == {"gold": b"1"}
    await store.put("gold", b"2")
    assert await learn(store, 1) == [("gold", b"2")]
    await store.close()


async def test_a_retention_that_loses_policies_is_repaired(apache_pulsar: PulsarStandalone) -> None:
    await Operator(apache_pulsar).call("PUT", "namespaces/public/forgetful")
    await ensure_namespace(apache_pulsar.admin_url, "public/forgetful")
    retention = await Operator(apache_pulsar).get("namespaces/public/forgetful/retention")
    assert retention == {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}


async def test_the_policies_topic_outlives_all_daemons_with_our_retention_and_only_with_it(
    apache_pulsar: PulsarStandalone,
) -> None:
    ours, plain = "public/kept", "public/unkept"
    await Operator(apache_pulsar).call("PUT", f"namespaces/{plain}")
    await ensure_namespace(apache_pulsar.admin_url, ours)
    for namespace in (ours, plain):
        policy = f"namespaces/{namespace}/inactiveTopicPolicies"
        await Operator(apache_pulsar).call("POST", policy, IMPATIENT)

    async def write_and_leave(topic: str) -> None:
        table = PulsarPolicyStore(
            apache_pulsar.service_url, f"persistent://{topic}", settings=PATIENT
        )
        await table.open()
        await table.put("group:gold", b"1")
        await table.close()

    await write_and_leave(f"{ours}/policies")
    # Who left later is gone: then Pulsar has also looked at ours, which it could delete. Twice, for it
    # may have looked at the topics in any order.
    for name in ("policies", "again"):
        await write_and_leave(f"{plain}/{name}")
        async with asyncio.timeout(TIMEOUT_S):
            while await _topics(apache_pulsar, plain):
                pass
    assert await _topics(apache_pulsar, ours) == [f"persistent://{ours}/policies"]
    late = PulsarPolicyStore(
        apache_pulsar.service_url, f"persistent://{ours}/policies", settings=PATIENT
    )
    assert await read(late) == {"group:gold": b"1"}
    await late.close()


async def _topics(apache: PulsarStandalone, namespace: str) -> Any:
    return await Operator(apache).get(f"persistent/{namespace}")


async def test_what_the_admin_api_refuses_is_reported_with_its_reason(
    apache_pulsar: PulsarStandalone,
) -> None:
    with pytest.raises(ExchangeDown, match=r"(?s)answered 412 .*pulsar-admin"):
        await ensure_namespace(apache_pulsar.admin_url, "public/not a name")
    with pytest.raises(ExchangeDown, match=r"check exchange\.admin_url"):
        await ensure_namespace(apache_pulsar.service_url.replace("pulsar", "http"), "public/rgd")


async def test_a_compacted_table_reads_as_before(apache_pulsar: PulsarStandalone) -> None:
    await ensure_namespace(apache_pulsar.admin_url, NAMESPACE)
    path = f"{NAMESPACE}/compacted"

    def table() -> PulsarPolicyStore:
        return PulsarPolicyStore(
            apache_pulsar.service_url, f"persistent://{path}", settings=PATIENT
        )

    first = table()
    await first.open()
    for number in range(20):
        await first.put("often", b"%d" % number)
    await first.put("gone", b"1")
    await first.put("gone", b"")
    assert len(await learn(first, 22)) == 22
    await _compact(apache_pulsar, path)
    second = table()
    assert await read(second) == {"often": b"19"}
    await first.put("after", b"1")
    for each in (first, second):
        assert await learn(each, 1) == [("after", b"1")]
        await each.close()


async def _compact(apache: PulsarStandalone, path: str) -> None:
    await Operator(apache).call("PUT", f"persistent/{path}/compaction")
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            status = await Operator(apache).get(f"persistent/{path}/compaction")
            if status["status"] == "SUCCESS":
                return
            assert status["status"] in {"RUNNING", "NOT_RUN"}, status
