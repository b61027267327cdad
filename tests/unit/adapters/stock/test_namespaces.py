"""Whose namespace a daemon sets up; whether Pulsar takes it: tests/contract/exchange/test_apache_pulsar.py."""

import pytest

from rgd.app.access import make_namespace
from rgd.config.settings import ExchangeSettings
from tests.unit.adapters.stock.pretend_pulsar import PretendPulsar

NAMESPACE = "namespaces/public/default"
SETTINGS = {f"{NAMESPACE}/retention", f"{NAMESPACE}/compactionThreshold"}


@pytest.mark.parametrize(
    ("url", "keeps", "touched"),
    [
        ("pulsar://p:6650", True, SETTINGS),
        ("pulsar://p:6650", False, set()),
        ("embedded", True, set()),
    ],
)
async def test_only_the_namespace_of_a_policies_topic_is_set_up(
    url: str, keeps: bool, touched: set[str]
) -> None:
    async with PretendPulsar() as pulsar:
        for path in ("tenants/public", NAMESPACE, *SETTINGS):
            pulsar.say(path, {})
        settings = ExchangeSettings(url=url, admin_url=pulsar.url)
        await make_namespace(settings, "public/default", keeps=keeps)
        assert SETTINGS & set(pulsar.calls) == touched
