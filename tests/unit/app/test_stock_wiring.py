"""Stock brokers as neighbours in a daemon as `rgd serve` builds it.

The parts are tested where they are (test_stock_neighbours.py); a live Pulsar in tests/integration/stock.
"""

from pathlib import Path

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.metrics.exposition import Exposition
from rgd.config.load import load_settings
from rgd.core.broker.effects import SendStockReport
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import NS_PER_S, Pair
from tests.support.whole_daemon import RgdDaemon, build

REPORT = StockReport("rgd://b1", (GroupUsage("gold", Pair(1, 1)),))


def built(folder: Path, dialects: str) -> tuple[RgdDaemon, Exposition]:
    """A daemon that speaks these; nothing is opened."""
    overrides = {
        "broker.name": "b1",
        "exchange.url": "pulsar://127.0.0.1:6650",
        "exchange.admin_url": "http://127.0.0.1:8080",
        "exchange.dialects": dialects,
        "exchange.pulsar_period_s": 5,
        "log.dir": folder,
    }
    settings = load_settings(None, {}, overrides)
    return build(settings, settings.exchange.url)


async def shown(exposition: Exposition) -> list[str]:
    """The lines of the stock brokers' metrics."""
    body, _ = await exposition.render("")
    return [line for line in body.decode().splitlines() if line.startswith("rgd_stock")]


async def test_with_both_dialects_the_stock_brokers_are_neighbours(tmp_path: Path) -> None:
    daemon, exposition = built(tmp_path, "compact, pulsar")
    stock = daemon.stock
    assert stock is not None
    assert stock.parts.exchange is not daemon.parts.exchange
    assert isinstance(stock.parts.exchange, PulsarExchange)
    assert stock.parts.period_s == 5
    assert daemon.core.settings.stock_period_ns == 5 * NS_PER_S
    daemon._carry_out(SendStockReport(REPORT))
    assert "rgd_stock_reports_sent_total 1.0" in await shown(exposition)
    assert "exchange with stock brokers: connecting" in daemon.health().degraded
    await daemon.close()
