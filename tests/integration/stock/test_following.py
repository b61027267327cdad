"""A daemon beside a real Pulsar: what an operator sets there is in force here within two polls.

Each change is made over Pulsar's REST API and seen in what `acquire` answers. Not covered: bad
answers (tests/unit/adapters/stock), tokens and TLS (this Pulsar asks for none).
"""

from pathlib import Path

import pytest

from rgd.core.policies.model import BacklogAction, BacklogQuota, BacklogQuotas
from rgd.core.units import Kind
from tests.integration.stock.stock_house import stock_house
from tests.support.pulsar_operator import Operator
from tests.support.pulsar_standalone import PulsarStandalone

pytestmark = pytest.mark.pulsar


async def test_groups_and_attachments_are_followed(
    apache_pulsar: PulsarStandalone, tmp_path: Path
) -> None:
    operator, orders = Operator(apache_pulsar), "stock-groups/orders"
    await operator.namespace(orders)
    async with stock_house(apache_pulsar, tmp_path) as house:
        await house.until_ready()
        assert house.notes() == []
        assert house.limit(orders) is None
        await operator.call("PUT", "resourcegroups/stock-gold", {"publishRateInMsgs": 1000})
        await operator.call("PUT", "resourcegroups/stock-trial", {"dispatchRateInBytes": 5000})
        await operator.call("POST", f"namespaces/{orders}/resourcegroup/stock-gold")
        await house.two_polls()
        assert house.limit(orders) == ("resource_group", "stock-gold", 1000)
        assert house.limit(orders, Kind.DISPATCH) is None
        await operator.call("PUT", "resourcegroups/stock-gold", {"publishRateInMsgs": 500})
        await house.two_polls()
        assert house.limit(orders) == ("resource_group", "stock-gold", 500)
        await operator.call("POST", f"namespaces/{orders}/resourcegroup/stock-trial")
        await house.two_polls()
        assert house.limit(orders) is None
        in_bytes = house.limit(orders, Kind.DISPATCH, of="bytes")
        assert in_bytes == ("resource_group", "stock-trial", 5000.0)
        await operator.call("DELETE", f"namespaces/{orders}/resourcegroup")
        await house.two_polls()
        assert house.limit(orders, Kind.DISPATCH, of="bytes") is None
        await operator.call("DELETE", "resourcegroups/stock-gold")
        await house.two_polls()
        assert "stock-gold" not in house.daemon.snapshot().groups
        assert "stock-trial" in house.daemon.snapshot().groups


async def test_a_namespaces_rates_and_quotas_are_followed(
    apache_pulsar: PulsarStandalone, tmp_path: Path
) -> None:
    operator, orders = Operator(apache_pulsar), "stock-rates/orders"
    eu = f"persistent://{orders}/eu"
    await operator.namespace(orders)
    base = f"namespaces/{orders}"
    async with stock_house(apache_pulsar, tmp_path) as house:
        await operator.call("POST", f"{base}/publishRate", {"publishThrottlingRateInMsg": 20})
        rate = {"dispatchThrottlingRateInMsg": 100, "ratePeriodInSecond": 10}
        await operator.call("POST", f"{base}/dispatchRate", rate)
        rate = {"dispatchThrottlingRateInByte": 3000}
        await operator.call("POST", f"{base}/subscriptionDispatchRate", rate)
        quota = {"limitSize": 1 << 20, "policy": "producer_exception"}
        await operator.call("POST", f"{base}/backlogQuota", quota)
        await house.two_polls()
        assert house.limit(eu) == ("topic", None, 20)
        assert house.limit(eu, Kind.DISPATCH) == ("topic", None, 10)
        in_bytes = house.limit(eu, Kind.DISPATCH, subscription="billing", of="bytes")
        assert in_bytes == ("subscription", None, 3000.0)
        assert house.daemon.snapshot().backlogs.namespaces[orders] == BacklogQuotas(
            size=BacklogQuota(1 << 20, action=BacklogAction.REFUSE)
        )
        for what in ("publishRate", "dispatchRate", "subscriptionDispatchRate", "backlogQuota"):
            await operator.call("DELETE", f"{base}/{what}")
        await house.two_polls()
        assert house.limit(eu) is None
        assert house.limit(eu, Kind.DISPATCH, subscription="billing", of="bytes") is None
        assert orders not in house.daemon.snapshot().backlogs.namespaces
        assert orders in house.daemon.snapshot().existing
        await operator.call("DELETE", base)
        await house.two_polls()
        assert orders not in house.daemon.snapshot().existing


async def test_the_brokers_dispatch_limit_is_followed(
    apache_pulsar: PulsarStandalone, tmp_path: Path
) -> None:
    operator, eu = Operator(apache_pulsar), "persistent://stock-limits/orders/eu"
    path = "brokers/configuration/dispatchThrottlingRateIn"
    async with stock_house(apache_pulsar, tmp_path) as house:
        await house.until_ready()
        assert house.limit(eu, Kind.DISPATCH) is None
        try:
            await operator.call("POST", f"{path}Msg/500")
            await operator.call("POST", f"{path}Byte/3000")
            await house.two_polls()
            assert house.limit(eu, Kind.DISPATCH) == ("broker", None, 500)
            assert house.limit(eu, Kind.DISPATCH, of="bytes") == ("broker", None, 3000)
            assert house.limit(eu) is None
        finally:
            for name in ("Msg", "Byte"):
                await operator.call("POST", f"{path}{name}/0")
                await operator.call("DELETE", f"{path}{name}")
        await house.two_polls()
        assert house.limit(eu, Kind.DISPATCH) is None


async def test_the_policies_of_topics_that_are_asked_for_are_followed(
    apache_pulsar: PulsarStandalone, tmp_path: Path
) -> None:
    operator, orders = Operator(apache_pulsar), "stock-topics/orders"
    eu, us = f"persistent://{orders}/eu", f"persistent://{orders}/us"
    await operator.namespace(orders)
    await operator.topic(eu, "billing")
    base = f"persistent/{orders}"
    await operator.call("PUT", f"{base}/us/partitions", 2)
    publish, dispatch = "publishThrottlingRateInMsg", "dispatchThrottlingRateInMsg"
    await operator.policy(f"{base}/us/publishRate", {publish: 4})
    async with stock_house(apache_pulsar, tmp_path) as house:
        await house.until_ready()
        # Nobody asked for them yet.
        assert house.limit(f"{us}-partition-1") is None
        assert house.limit(eu, Kind.DISPATCH, subscription="billing") is None
        await operator.policy(f"{base}/eu/publishRate", {publish: 3})
        await operator.policy(f"{base}/eu/dispatchRate", {dispatch: 30})
        await house.two_polls()
        assert house.limit(eu) == ("topic", None, 3)
        assert house.limit(eu, Kind.DISPATCH) == ("topic", None, 30)
        assert house.limit(f"{us}-partition-1") == ("topic", None, 4)
        await operator.policy(f"{base}/eu/dispatchRate", None)
        await operator.policy(f"{base}/eu/subscriptionDispatchRate", {dispatch: 7})
        await house.two_polls()
        billing = house.limit(eu, Kind.DISPATCH, subscription="billing")
        assert billing == ("subscription", None, 7.0)
        await operator.policy(f"{base}/eu/billing/dispatchRate", {dispatch: 2})
        await house.two_polls()
        billing = house.limit(eu, Kind.DISPATCH, subscription="billing")
        assert billing == ("subscription", None, 2.0)
        assert house.limit(eu, Kind.DISPATCH, subscription="audit") == ("subscription", None, 7)
        await operator.call("DELETE", f"{base}/eu?force=true")
        await operator.policy(f"{base}/us/publishRate", None)
        await house.two_polls()
        assert house.limit(eu) is None
        assert house.limit(f"{us}-partition-1") is None
        assert house.notes() == []


async def test_pulsar_may_go_and_come_back(apache_pulsar: PulsarStandalone, tmp_path: Path) -> None:
    operator, orders = Operator(apache_pulsar), "stock-outage/orders"
    await operator.namespace(orders)
    await operator.call("PUT", "resourcegroups/stock-firm", {"publishRateInMsgs": 1000})
    await operator.call("POST", f"namespaces/{orders}/resourcegroup/stock-firm")
    firm = ("resource_group", "stock-firm", 1000.0)
    groups = tmp_path / "groups.yaml"
    groups.write_text("groups: {stand-in: {publish: {messages: 7}}}\n")
    try:
        async with stock_house(apache_pulsar, tmp_path / "log", groups) as house:
            assert "stand-in" in house.daemon.snapshot().groups
            await house.until_ready()
            assert house.limit(orders) == firm
            apache_pulsar.kill()
            await house.two_polls(are_whole=False)
            assert house.limit(orders) == firm
            assert house.daemon.health().ready
            (note,) = house.notes()
            assert "in force is what was read last" in note
        # A restart during the outage, and one without anything stored.
        async with stock_house(apache_pulsar, tmp_path / "log", groups) as house:
            assert house.limit(orders) == firm
            await house.two_polls(are_whole=False)
            assert house.limit(orders) == firm
            (note,) = house.notes()
            assert "in force is what the last run read" in note
        async with stock_house(apache_pulsar, tmp_path / "other", groups) as house:
            await house.two_polls(are_whole=False)
            assert house.limit(orders) is None
            assert "stand-in" in house.daemon.snapshot().groups
            (note,) = house.notes()
            assert "in force is the groups file" in note
            await apache_pulsar.restart_registered()
            await operator.call("PUT", "resourcegroups/stock-firm", {"publishRateInMsgs": 9})
            await house.two_polls()
            assert house.limit(orders) == ("resource_group", "stock-firm", 9)
            assert "stand-in" not in house.daemon.snapshot().groups
            assert house.notes() == []
    finally:
        if apache_pulsar.pid is None:  # the test failed while Pulsar was away
            apache_pulsar.restart()
