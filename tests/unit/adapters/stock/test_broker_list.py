"""Which brokers live and what their reports call them, from an admin API that plays Pulsar's answers.

Not covered: a running Pulsar (tests/integration/stock/test_neighbours.py).
"""

import json

import pytest

from rgd.adapters.stock.broker_list import StockBrokerList
from rgd.adapters.stock.client import StockClient
from rgd.config.settings import ExchangeSettings
from rgd.ports.stock import StockRefused
from rgd.ports.stock_brokers import ListedBroker
from tests.unit.adapters.stock.pretend_pulsar import PretendPulsar

LIST, LOAD = "brokers/standalone", "broker-stats/load-report"
CONFIGURATION = "brokers/configuration/runtime"
TRANSPORT = "org.apache.pulsar.broker.resourcegroup.ResourceUsageTopicTransportManager"
TOLD = {
    "advertisedAddress": "10.0.0.1",
    "brokerServicePort": "Optional[6650]",
    "resourceUsageTransportClassName": TRANSPORT,
    "resourceUsageTransportPublishIntervalInSecs": "5",
}


def ok(body: object) -> dict[str, object]:
    return {"status": 200, "type": "application/json", "body": json.dumps(body)}


async def listed(pulsar: PretendPulsar, *, polls: int = 1) -> list[ListedBroker]:
    client = StockClient(ExchangeSettings(admin_url=pulsar.url))
    brokers = StockBrokerList(client, "standalone", 5)
    try:
        for _ in range(polls - 1):
            await brokers.listed()
        return list(await brokers.listed())
    finally:
        await brokers.close()


async def test_the_load_report_says_how_reports_name_a_broker() -> None:
    async with PretendPulsar({}) as pulsar:
        me = pulsar.url.removeprefix("http://")
        url = "pulsar://broker-1.example.com:6650"
        load = {"pulsarServiceUrl": url, "webServiceUrl": pulsar.url, "bandwidthIn": {"usage": 0.0}}
        pulsar.answers |= {LIST: ok([me]), LOAD: ok(load), CONFIGURATION: ok(TOLD)}
        assert await listed(pulsar, polls=3) == [ListedBroker(me, url, 5)]
        # It is asked about itself once.
        assert sorted(pulsar.calls) == sorted([LIST, LIST, LIST, LOAD, CONFIGURATION])


async def test_without_a_load_report_the_configuration_says_it() -> None:
    async with PretendPulsar({}) as pulsar:
        me = pulsar.url.removeprefix("http://")
        nothing = {"status": 204, "type": "application/json", "body": ""}
        pulsar.answers |= {LIST: ok([me]), LOAD: nothing, CONFIGURATION: ok(TOLD)}
        assert await listed(pulsar) == [ListedBroker(me, "pulsar://10.0.0.1:6650", 5)]
        # As Pulsar has it where the address is that of the host, and the transport is off.
        told = TOLD | {"advertisedAddress": None, "resourceUsageTransportClassName": ""}
        pulsar.answers[CONFIGURATION] = ok(told)
        assert await listed(pulsar) == [ListedBroker(me, "pulsar://127.0.0.1:6650", 0)]


async def test_a_broker_whose_period_does_not_fit_is_asked_again() -> None:
    async with PretendPulsar({}) as pulsar:
        pulsar.answers[LIST] = ok([pulsar.url.removeprefix("http://")])
        client = StockClient(ExchangeSettings(admin_url=pulsar.url))
        brokers = StockBrokerList(client, "standalone", 5)
        for change, period_s in (({"resourceUsageTransportClassName": ""}, 0), ({}, 5)):
            pulsar.answers[CONFIGURATION] = ok(TOLD | change)
            assert [one.period_s for one in await brokers.listed()] == [period_s]
        await brokers.close()


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"brokerServicePort": "Optional.empty", "resourceUsageTransportPublishIntervalInSecs": "5"},
        {
            "advertisedListeners": "internal:pulsar://10.0.0.1:6650",
            **TOLD,
            "resourceUsageTransport": 1,
        },
        {"advertisedAddress": 7, "brokerServicePort": "Optional[6650]"},
        {"brokerServicePort": "Optional[x]"},
        ["not", "a", "mapping"],
    ],
)
async def test_what_a_broker_does_not_say_is_not_guessed(told: object) -> None:
    async with PretendPulsar({}) as pulsar:
        me = pulsar.url.removeprefix("http://")
        pulsar.answers |= {LIST: ok([me]), CONFIGURATION: ok(told)}
        (broker,) = await listed(pulsar)
        assert (broker.address, broker.service_url) == (me, None)
        assert broker.host == "127.0.0.1"


@pytest.mark.parametrize("body", [[], "text", {"reason": "no"}, [f"b{n}:80" for n in range(1001)]])
async def test_a_list_that_cannot_be_is_refused(body: object) -> None:
    async with PretendPulsar({}) as pulsar:
        pulsar.answers[LIST] = ok(body)
        with pytest.raises(StockRefused):
            await listed(pulsar)
