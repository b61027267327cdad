"""Reads which brokers of a stock Pulsar live, and how their usage reports name them.

Law: as `rgd.ports.stock_brokers`. A broker tells its service URL once; it is kept while the broker is listed. One that reports
in another period, or never, is asked again, because its operator may have mended that.

Calls of one poll: one for the list, and two for each broker that has not told everything yet. The load report
has the service URL, except under Pulsar's load manager for a single broker; then it is made from the
configuration, as Pulsar makes it. Both are asked of the broker itself. All need a superuser. Brokers that
cannot be asked (the admin API is behind a proxy) are listed by their address only.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from typing_extensions import override

from rgd.adapters.stock.answers import NAMES
from rgd.adapters.stock.client import StockClient
from rgd.adapters.stock.paths import quoted
from rgd.ports.stock import StockError, StockRefused
from rgd.ports.stock_brokers import ListedBroker, StockBrokers

#: Most brokers that are asked about themselves in one poll; the others in the next ones.
ASKED_MAX: Final = 16
#: Most brokers of a list.
LISTED_MAX: Final = 1000

_PORT: Final = "Optional["


class _LoadReport(msgspec.Struct, rename="camel"):
    """LocalBrokerData, or the load data of the extensible load manager."""

    pulsar_service_url: str | None = None


_LOAD: Final = msgspec.json.Decoder(_LoadReport)
_CONFIGURATION: Final = msgspec.json.Decoder(dict[str, Any])


class StockBrokerList(StockBrokers):
    """The brokers of one cluster.

    Args:
        client: makes the calls; of this reader alone.
        cluster: the cluster's name.
        period_s: how often brokers should report.
    """

    def __init__(self, client: StockClient, cluster: str, period_s: int) -> None:
        self._client = client
        self._cluster = cluster
        self._period_s = period_s
        self._scheme = urlsplit(client.url).scheme
        #: What brokers reported about themselves, by address.
        self._told: dict[str, ListedBroker] = {}

    @override
    async def listed(self) -> Sequence[ListedBroker]:
        await self._client.prepare()
        path = f"brokers/{quoted(self._cluster)}"
        addresses = await self._client.get(path, NAMES) or []
        if not addresses or len(addresses) > LISTED_MAX:
            raise StockRefused(f"{path}: expected 1 to {LISTED_MAX} brokers, got {len(addresses)}")
        live = set(addresses)
        self._told = {address: told for address, told in self._told.items() if address in live}
        asked = dict(self._told)
        due = [address for address in addresses if address not in self._told]
        # Those asked longest ago are the first.
        due += [one.address for one in self._told.values() if one.period_s != self._period_s]
        for broker in await asyncio.gather(*map(self._ask, due[:ASKED_MAX])):
            told = self._told.pop(broker.address, None)
            if broker.service_url is not None and broker.period_s is not None:
                told = broker
            if told is not None:
                self._told[broker.address] = told
            asked[broker.address] = told or broker
        return [asked.get(address) or ListedBroker(address) for address in addresses]

    @override
    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, address: str) -> ListedBroker:
        """What a broker says of itself."""
        at = f"{self._scheme}://{address}"
        configured: dict[str, Any] = {}
        url = None
        with suppress(StockError):  # the configuration says it too
            load = await self._client.get("broker-stats/load-report", _LOAD, at=at)
            url = None if load is None else load.pulsar_service_url
        try:
            path = "brokers/configuration/runtime"
            configured = await self._client.get(path, _CONFIGURATION, at=at) or {}
        except StockError:
            return ListedBroker(address, url)
        return ListedBroker(
            address, url or _service_url(address, configured), _period_s(configured)
        )


def _service_url(address: str, configured: Mapping[str, Any]) -> str | None:
    """The service URL that a broker makes of its configuration (PulsarService.brokerUrl)."""
    host = configured.get("advertisedAddress") or address.rpartition(":")[0]
    port = str(configured.get("brokerServicePort", ""))
    if not isinstance(host, str) or configured.get("advertisedListeners"):
        return None
    number = port.removeprefix(_PORT).removesuffix("]")
    return f"pulsar://{host}:{number}" if port.startswith(_PORT) and number.isdecimal() else None


def _period_s(configured: Mapping[str, Any]) -> int | None:
    """How often a broker reports; 0 where its transport is off."""
    if "resourceUsageTransportClassName" not in configured:
        return None
    if not configured["resourceUsageTransportClassName"]:
        return 0
    seconds = str(configured.get("resourceUsageTransportPublishIntervalInSecs", ""))
    return int(seconds) if seconds.isascii() and seconds.isdecimal() else None
