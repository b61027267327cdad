"""What recorded answers of Apache Pulsar 4.0.8 mean, field by field; and what is no answer at all.

Not covered: how they are asked for (test_reader.py), and that Pulsar still answers so
(tests/integration/stock).
"""

import json

import msgspec
import pytest

from rgd.adapters.stock import answers
from rgd.core.errors import InvalidName
from rgd.core.policies.model import BacklogAction, BacklogQuota, BacklogQuotas, LocalLimit, Rates
from rgd.ports.stock import StockNamespace
from tests.support.cases import cases
from tests.unit.adapters.stock.pretend_pulsar import RECORDED

ORDERS = RECORDED["namespaces/acme/orders"]["body"]


def orders(**changes: object) -> str:
    """The recorded namespace with other fields."""
    return json.dumps({**json.loads(ORDERS), **changes})


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


@cases(
    "body",
    {
        "html": ("<html><body>Login</body></html>",),
        "null": ("null",),
        "an object of nobody": ("{}",),
        "a group that is a number": (orders(resource_group_name=7),),
        "rates that are a list": (orders(publishMaxMessageRate=[]),),
        "a rate that is a text": (ORDERS.replace('InMsg":20', 'InMsg":"20"'),),
        "a rate without numbers": (orders(topicDispatchRate={"standalone": {}}),),
        "an action that nobody knows": (
            orders(backlog_quota_map={"message_age": {"limitTime": 1, "policy": "hope"}}),
        ),
    },
)
def test_what_is_no_namespace_is_refused_whole(body: str) -> None:
    with pytest.raises(msgspec.MsgspecError):
        answers.NAMESPACE.decode(body)


@pytest.mark.parametrize("name", ["half odd", "a" * 600], ids=["blank", "long"])
def test_a_group_that_rgd_cannot_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        answers.group_of(name, answers.ResourceGroup(1))
