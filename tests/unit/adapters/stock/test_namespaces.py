"""Whose namespace a daemon sets up; whether Pulsar takes it: tests/contract/exchange/test_apache_pulsar.py."""

from rgd.app.access import make_namespace
from rgd.config.settings import ExchangeSettings
from tests.unit.adapters.stock.pretend_pulsar import PretendPulsar

NAMESPACE = "namespaces/public/default"
SETTINGS = {f"{NAMESPACE}/retention", f"{NAMESPACE}/compactionThreshold"}


async def test_only_the_namespace_of_a_policies_topic_is_set_up() -> None:
    async with PretendPulsar() as pulsar:
        for path in ("tenants/public", NAMESPACE, *SETTINGS):
            pulsar.say(path, {})
        for url, keeps in (("pulsar://p", False), ("embedded", True), ("pulsar://p", True)):
            assert not SETTINGS & set(pulsar.calls)
            settings = ExchangeSettings(url=url, admin_url=pulsar.url)
            await make_namespace(settings, "public/default", keeps=keeps)
        assert set(pulsar.calls) >= SETTINGS
