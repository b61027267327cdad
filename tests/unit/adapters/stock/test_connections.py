"""Several addresses of an admin API, and certificates that change. What a poll brings is in test_reader."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rgd.adapters.stock import client
from rgd.adapters.stock.answers import NAMES
from rgd.ports.stock import StockDown, StockPolicies, StockRefused
from tests.unit.adapters.stock.pretend_pulsar import PretendPulsar, admin


@pytest.fixture
async def pulsar() -> AsyncIterator[PretendPulsar]:
    async with PretendPulsar() as pretend:
        yield pretend


async def test_of_several_addresses_the_next_is_asked_when_one_is_unreachable(
    pulsar: PretendPulsar,
) -> None:
    async with PretendPulsar() as other:
        hosts = [one.url.removeprefix("http://") for one in (other, pulsar)]
        async with admin(f"http://{','.join(hosts)}") as stock:
            assert (await stock.read(StockPolicies(), {})).faults == {}
            assert not pulsar.calls
            await other.stop()
            assert (await stock.read(StockPolicies(), {})).faults == {}
            assert pulsar.calls
            await pulsar.stop()
            with pytest.raises(StockDown):
                await stock.read(StockPolicies(), {})


async def test_certificates_that_changed_are_read_again(
    pulsar: PretendPulsar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CALL_TIMEOUT_S", 60)
    file = tmp_path / "ca.pem"
    authority = ssl.create_default_context().get_ca_certs(binary_form=True)[0]
    file.write_text(ssl.DER_cert_to_PEM_cert(authority))
    pulsar.hanging.add("clusters")
    async with admin(pulsar.url, admin_ca_file=file) as stock:
        await stock.read(StockPolicies(), {})
        under_way = asyncio.create_task(stock._client.require("clusters", NAMES))
        while "clusters" not in pulsar.calls:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0)
        file.write_text(f"{file.read_text()}\n")
        await stock.read(StockPolicies(), {})
        assert not under_way.done()
        under_way.cancel()
        file.write_text("none any more")
        with pytest.raises(StockRefused, match="certificates"):
            await stock.read(StockPolicies(), {})
