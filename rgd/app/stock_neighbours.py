"""The stock brokers beside this daemon: their reports in, ours out, and which of them live.

Law: as for the daemons' own exchange (`rgd.app.traffic`), whose queues and limits hold here, too. It is apart from
that: a stock topic that cannot be reached, or a flood of it, degrades the neighbourhood and nothing else.
Reports of every sender go to the core, which knows rgd's by their names.

Once a stock period this daemon sends a report without groups, which changes nothing at stock brokers. It comes back only
if the topic is read, so a dead connection is noticed where there is nothing to report, too
(`rgd.adapters.exchange.echo`). The list of live brokers is read as often. A list that cannot be read changes nothing. Where the brokers
count over another period than configured, report nothing, or have other clocks, that is logged once, shown at
`/readyz` and in metrics, and never corrected by guessing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import structlog

from rgd.app.clock import Clock
from rgd.app.clock_watch import ClockWatch
from rgd.app.containment import InternalErrors
from rgd.app.traffic import Traffic
from rgd.core.broker.events import Event, StockBrokersListed, StockReportReceived
from rgd.core.stock.members import StockMembers
from rgd.core.stock.messages import StockReport
from rgd.core.stock.names import PREFIX, is_of_rgd, stock_name
from rgd.ports.exchange import OVERFLOW, UNREADABLE, Exchange, Received
from rgd.ports.metrics import Sample
from rgd.ports.stock import StockError
from rgd.ports.stock_brokers import ListedBroker, StockBrokers
from rgd.wire.dialect import PulsarDialect

#: The name of the neighbourhood's troubles in `/readyz` and in the log.
STOCK_EXCHANGE: Final = "exchange with stock brokers"
STOCK_BROKERS: Final = "stock brokers"

#: A clock further off than this part of a stock period is reported; at two periods stock brokers ignore reports.
CLOCK_PERIODS: Final = 1.0

#: Most names of rgd brokers that are kept for show.
SENDERS_MAX: Final = 10_000

_log = structlog.get_logger("rgd.stock")


@dataclass(frozen=True, slots=True)
class StockParts:
    """What the neighbourhood is made of."""

    #: On the stock brokers' topic.
    exchange: Exchange
    brokers: StockBrokers
    #: The configured period of stock reports, in seconds.
    period_s: int


class StockNeighbours:
    """Carries what stock brokers and the core tell each other.

    Args:
        parts: the outside.
        errors: counts contained exceptions.
        clock: monotonic, and of the world for publish times.
        handle: takes events to the core.
        members: the stock brokers that the core knows; only read.
        broker: this daemon's broker.
    """

    def __init__(
        self,
        parts: StockParts,
        errors: InternalErrors,
        clock: Clock,
        *,
        handle: Callable[[Event], None],
        members: StockMembers,
        broker: str,
    ) -> None:
        self.parts = parts
        # Once a period all groups are reported, whatever was reported before.
        self.traffic = Traffic(
            parts.exchange,
            PulsarDialect(),
            errors,
            outdated_s=float(parts.period_s),
            name=STOCK_EXCHANGE,
        )
        self._clock = clock
        self._handle = handle
        self._members = members
        self._heartbeat = StockReport(stock_name(broker))
        self._clocks = ClockWatch()
        #: Why the list of brokers cannot be read.
        self._unlisted: str | None = None
        #: The rgd brokers that sent on the stock brokers' topic.
        self.senders: set[str] = set()
        self._sent = self._received = 0
        self._listed: tuple[ListedBroker, ...] = ()
        self._list_failures = 0
        self._told: frozenset[str] = frozenset()

    def works(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """The tasks to run, by name."""
        return {
            "stock": lambda: self.traffic.follow(self._take),
            "stock_send": self.traffic.send,
            "stock_list": self._poll,
        }

    def post(self, report: StockReport) -> None:
        """Queue a report to be sent."""
        self._sent += 1
        self.traffic.post(report)

    def troubles(self) -> dict[str, str]:
        """What works less well than it should, by what it is."""
        troubles = {
            STOCK_EXCHANGE: self.traffic.trouble,
            "list of stock brokers": self._unlisted,
            STOCK_BROKERS: "; ".join(sorted(self._told)),
        }
        return {what: why for what, why in troubles.items() if why}

    def samples(self) -> Iterator[Sample]:
        """The figures of the neighbourhood, as far as the core does not have them."""
        yield Sample("rgd_stock_reports_sent_total", (), self._sent)
        yield Sample("rgd_stock_reports_received_total", (), self._received)
        dropped = self.traffic.dropped
        for reason in dropped.keys() | {OVERFLOW, UNREADABLE}:
            yield Sample("rgd_stock_reports_dropped_total", (reason,), dropped[reason])
        for broker, ahead_s in self._clocks.ahead_s().items():
            yield Sample("rgd_stock_clock_ahead_seconds", (broker,), ahead_s)
        yield Sample("rgd_stock_brokers", (), len(self._members))
        for broker in self._members.names():
            member = self._members.get(broker)
            if member is not None and member.spacing_ms is not None:
                yield Sample("rgd_stock_period_seconds", (broker,), member.spacing_ms / 1000)
        yield Sample("rgd_stock_period_differs", (), any(self._off_period()))
        for reason, count in self._members.refused.items():
            yield Sample("rgd_stock_refused_total", (reason,), count)
        yield Sample("rgd_stock_brokers_listed", (), len(self._listed))
        yield Sample("rgd_stock_list_failures_total", (), self._list_failures)

    async def close(self) -> None:
        """Leave the topic, and close the admin API's connections."""
        await self.parts.exchange.close()
        await self.parts.brokers.close()

    # Reports.

    def _take(self, received: Received) -> None:
        now_ms = self._clock.unix_ms()
        report = self.traffic.decoded(received.payload)
        if report is None:
            return
        if is_of_rgd(report.broker):
            if len(self.senders) < SENDERS_MAX:
                self.senders.add(report.broker.removeprefix(PREFIX))
        else:
            self._received += 1
            self._clocks.heard(report.broker, received.published_ms, now_ms)
        self._handle(StockReportReceived(self._clock.now(), report, received.published_ms))

    # Which brokers live.

    async def look(self) -> None:
        """Read which brokers live, and tell what is not as the settings say."""
        await self._read_list()
        self._tell_differences()

    async def _poll(self) -> None:
        while True:
            await self.look()
            if self.traffic.is_reached:
                self.traffic.post(self._heartbeat)
            await asyncio.sleep(self.parts.period_s)

    async def _read_list(self) -> None:
        try:
            self._listed = tuple(await self.parts.brokers.listed())
        except StockError as error:
            self._list_failures += 1
            if self._unlisted is None:
                _log.warning("cannot list the stock brokers", reason=str(error))
            self._unlisted = str(error)
            return
        if self._unlisted is not None:
            _log.info("lists the stock brokers again")
        self._unlisted = None
        names = live_names(self._listed, self._members.names())
        self._handle(StockBrokersListed(self._clock.now(), names))
        self._clocks.forget(frozenset(self._clocks.ahead_s()) - names)

    def _tell_differences(self) -> None:
        """Log what differs from the settings, each once, and keep it for `/readyz`."""
        told = frozenset(self._differences())
        for difference in sorted(told - self._told):
            _log.warning("a stock broker differs", what=difference)
        if self._told and not told:
            _log.info("the stock brokers are as expected again")
        self._told = told

    def _off_period(self) -> Iterator[str]:
        """The brokers whose reports come in another period than the configured one."""
        for name in self._members.names():
            member = self._members.get(name)
            if member is not None and member.is_off_period:
                yield name

    def _differences(self) -> Iterator[str]:
        period_s = self.parts.period_s
        for broker in self._listed:
            if broker.period_s == 0:
                yield f"{broker.address} reports no usage: resourceUsageTransportClassName is not set"
            elif broker.period_s not in {None, period_s}:
                yield f"{broker.address} reports every {broker.period_s} s, exchange.pulsar_period_s is {period_s}"
        for name in self._off_period():
            yield f"{name} is not heard every {period_s} s (exchange.pulsar_period_s)"
        for name, ahead_s in self._clocks.ahead_s().items():
            if abs(ahead_s) > CLOCK_PERIODS * period_s:
                side = "ahead of" if ahead_s > 0 else "behind"
                yield f"the clock of {name} is {side} this machine's by more than a stock period"


def live_names(listed: Collection[ListedBroker], members: Collection[str]) -> frozenset[str]:
    """The names, as in reports, of the brokers that live.

    Of a broker that did not tell its service URL it is known brokers' names with its host.
    """
    urls = {broker.service_url for broker in listed if broker.service_url is not None}
    hosts = {_host(f"//{broker.address}") for broker in listed if broker.service_url is None}
    return frozenset(urls) | {name for name in members if _host(name) in hosts}


def _host(url: str) -> str | None:
    """The host of a URL in lower case; None if it is none, as in a name that a stranger made up."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
