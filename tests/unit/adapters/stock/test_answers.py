"""What recorded answers of Apache Pulsar 4.0.8 mean, field by field; and what is no answer at all.

Not covered: how they are asked for (test_reader.py), and that Pulsar still answers so
(tests/integration/stock).
"""

import json
from typing import Any

import msgspec
import pytest

from rgd.adapters.stock import answers
from rgd.core.policies.model import (
    UNLIMITED,
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    Group,
    LocalLimit,
    Rates,
)
from rgd.ports.stock import StockNamespace, StockRefused
from tests.unit.adapters.stock.pretend_pulsar import RECORDED

ORDERS = RECORDED["namespaces/acme/orders"]["body"]


def orders(**changes: object) -> str:
    """The recorded namespace with other fields."""
    return json.dumps({**json.loads(ORDERS), **changes})


def dispatch(**fields: Any) -> LocalLimit:
    """What a dispatch rate as Pulsar writes it means."""
    said = {
        "dispatchThrottlingRateInMsg": -1,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
        **fields,
    }
    return answers.limit_of(None, answers.DISPATCH_RATE.decode(json.dumps(said)))


@pytest.mark.parametrize("rate", [0, -1, -7, None], ids=str)
def test_nothing_and_less_is_unlimited(rate: int | None) -> None:
    said = answers.ResourceGroup(rate, rate, rate, rate)
    assert answers.group_of("gold", said) == Group("gold")


def test_a_recorded_namespace_says_group_rates_and_backlog_quotas() -> None:
    assert answers.namespace_of(answers.NAMESPACE.decode(ORDERS), "standalone") == StockNamespace(
        group="gold",
        # 100 in 10 s; the publish rate is always per second.
        limit=LocalLimit(publish=Rates(20_000), dispatch=Rates(10_000), dispatch_period_s=10),
        # A period that nobody said comes as 0, a rate that nobody said too.
        subscriptions=LocalLimit(dispatch=Rates(50_000), dispatch_relative=True),
        backlogs=BacklogQuotas(
            size=BacklogQuota(size_bytes=1 << 20, action=BacklogAction.REFUSE),
            age=BacklogQuota(age_s=3600, action=BacklogAction.EVICT),
        ),
    )


@pytest.mark.parametrize(
    ("fields", "rates"),
    [
        pytest.param({}, None, id="set to no limit is not set"),
        pytest.param({"dispatchThrottlingRateInMsg": 100}, Rates(100_000), id="per second"),
        pytest.param(
            {"dispatchThrottlingRateInByte": 1, "ratePeriodInSecond": 3},
            Rates(None, 333),
            id="part",
        ),
        pytest.param(
            {"dispatchThrottlingRateInMsg": 1, "ratePeriodInSecond": 100_000},
            Rates(1),
            id="never rounded to nothing",
        ),
        pytest.param(
            {"dispatchThrottlingRateInMsg": 5, "ratePeriodInSecond": 0}, Rates(5000), id="no period"
        ),
        pytest.param(
            {"dispatchThrottlingRateInMsg": (1 << 63) - 1}, UNLIMITED, id="beyond all quotas"
        ),
    ],
)
def test_a_dispatch_rate_is_computed_per_second(
    fields: dict[str, int], rates: Rates | None
) -> None:
    assert dispatch(**fields).dispatch == rates


def test_a_relative_rate_is_kept_and_not_enforced() -> None:
    limit = dispatch(dispatchThrottlingRateInMsg=7, relativeToPublishRate=True)
    assert (limit.dispatch, limit.dispatch_relative) == (Rates(7000), True)


def test_an_old_pulsar_calls_a_quotas_size_its_limit() -> None:
    said = '{"destination_storage":{"limit":5,"policy":"producer_request_hold"}}'
    assert answers.backlogs_of(answers.QUOTAS.decode(said)).size == BacklogQuota(5)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<html><body>Login</body></html>", id="html"),
        pytest.param("[]", id="a list"),
        pytest.param("null", id="null"),
        pytest.param("{}", id="an object of nobody"),
        pytest.param('{"reason":"no"}', id="a complaint"),
        pytest.param(orders(resource_group_name=7), id="a group that is a number"),
        pytest.param(orders(publishMaxMessageRate=[]), id="rates that are a list"),
        pytest.param(
            orders(
                publishMaxMessageRate={
                    "standalone": {
                        "publishThrottlingRateInMsg": "10",
                        "publishThrottlingRateInByte": -1,
                    }
                }
            ),
            id="a rate that is a text",
        ),
        pytest.param(orders(topicDispatchRate={"standalone": {}}), id="a rate without numbers"),
        pytest.param(
            orders(backlog_quota_map={"message_age": {"limitTime": 1, "policy": "hope"}}),
            id="an action that nobody knows",
        ),
        pytest.param(ORDERS[:-5], id="cut off"),
    ],
)
def test_what_is_no_namespace_is_refused_whole(body: str) -> None:
    with pytest.raises(msgspec.MsgspecError):
        answers.NAMESPACE.decode(body)


@pytest.mark.parametrize("name", ["half odd", "", "a" * 600], ids=["blank", "empty", "long"])
def test_a_group_that_rgd_cannot_name_is_refused(name: str) -> None:
    with pytest.raises(StockRefused):
        answers.group_of(name, answers.ResourceGroup(1))
