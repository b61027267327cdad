"""What the exchange with stock brokers needs of a broker: compressed messages, and Pulsar's own namespace.

Not covered: stock brokers themselves (tests/integration/stock/test_neighbours.py).
"""

from dataclasses import replace

import pytest

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.stock.namespaces import SYSTEM_NAMESPACE
from tests.contract.exchange.backends import PulsarBackend, hear, open_all
from tests.support.pulsar_operator import Operator, ensure_namespace
from tests.support.pulsar_standalone import PulsarStandalone


async def test_compressed_messages_are_read_by_members_that_do_not_compress(
    broker_backend: PulsarBackend,
) -> None:
    settings = replace(broker_backend.settings, is_compressed=True)
    sender = PulsarExchange(broker_backend.url, broker_backend.usage, settings=settings)
    listener = broker_backend.exchange()
    try:
        await open_all([sender, listener])
        payload = b"pulsar://h:6650" * 5000
        await sender.publish(payload)
        assert await hear(listener, 1) == [payload]
        assert await hear(sender, 1) == [payload]
    finally:
        await sender.close()
        await listener.close()


@pytest.mark.pulsar
async def test_pulsars_own_namespace_is_made_and_not_changed(
    apache_pulsar: PulsarStandalone,
) -> None:
    operator, path = Operator(apache_pulsar), f"namespaces/{SYSTEM_NAMESPACE}"
    before = await operator.get(path)
    await ensure_namespace(apache_pulsar.admin_url, SYSTEM_NAMESPACE)
    assert await operator.get(path) == before
