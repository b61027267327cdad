"""Laws of what rgd reports to stock brokers, and of shares with stock rows.

Several daemons hear the same reports in the same order. Not covered: the times at which they hear
them (tests/simulation/test_stock.py).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Effect, SendStockReport
from rgd.core.broker.events import (
    Event,
    MessageReceived,
    PoliciesChanged,
    Started,
    StockReportReceived,
)
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.shares.columns_sums import FLOAT_EXACT_MAX
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.stock.names import stock_name
from rgd.core.stock.steering import foreign_usage, split
from rgd.core.units import COUNT_MAX, NS_PER_S, QUOTA_MAX, Nanos, Pair
from rgd.wire.pulsar_usage import encode_stock_report
from tests.unit.core.values import key, rates, report, usage

PERIOD_NS = 5 * NS_PER_S
DAEMONS = ("a", "b", "c")

counts = st.one_of(st.integers(0, 2_000), st.integers(0, COUNT_MAX))
quotas = st.one_of(st.none(), st.integers(0, 1_000), st.integers(0, QUOTA_MAX))
stock_usage = st.lists(
    st.tuples(st.sampled_from(["s1", "s2", "s3"]), st.none() | st.builds(Pair, counts, counts)),
    max_size=6,
)
wants = st.lists(st.integers(0, 10_000), min_size=3, max_size=3)


@given(
    total=st.integers(0, FLOAT_EXACT_MAX),
    weights=st.lists(st.integers(0, 9 * 10**15), min_size=1, max_size=1_000),
)
def test_parts_sum_to_the_whole_and_are_never_negative(total: int, weights: list[int]) -> None:
    column = np.array(weights)[:, None]
    parts = [int(split(np.array([float(total)]), column, at)[0]) for at in range(len(weights))]
    assert sum(parts) == total
    assert min(parts) >= 0


@given(counts, st.integers(-1, 9 * 10**18), st.integers(-1, 9 * 10**18), st.integers(1, 10**12))
def test_what_is_reported_is_never_negative_and_zero_when_idle(
    own: int, quota: int, part: int, period_ns: int
) -> None:
    reported = whole(own, quota, min(part, quota), period_ns)
    assert 0 <= reported <= FLOAT_EXACT_MAX
    assert own > 0 or reported == 0


def whole(own: int, quota: int, part: int, period_ns: int) -> int:
    """What rgd as a whole reports in one dimension."""
    figures = np.array([quota]), np.array([part])
    return int(foreign_usage(np.array([float(own)]), *figures, period_ns)[0])


@settings(max_examples=20, deadline=None)
@given(heard=stock_usage, wanted=wants, messages=quotas, size=quotas)
def test_daemons_agree_share_the_whole_quota_and_report_parts_of_one_whole(
    heard: Sequence[tuple[str, Pair | None]],
    wanted: Sequence[int],
    messages: int | None,
    size: int | None,
) -> None:
    daemons = [_Daemon(name, rates(messages, size), wanted) for name in DAEMONS]
    for name, used in heard:
        entry = GroupUsage("gold", used, None if used is None else Pair())
        for daemon in daemons:
            daemon.hear(StockReport(f"pulsar://{name}:6650", (entry,)))
    tables = [daemon.broker.shares(key()) for daemon in daemons]
    assert tables[0] == tables[1] == tables[2]
    for k, quota in enumerate(_pair(rates(messages, size))):
        shares = [_pair(share)[k] for share in tables[0].values()]
        assert quota is None or sum(share or 0 for share in shares) == quota
    _check_reports(daemons, _pair(rates(messages, size)))


def _check_reports(daemons: Sequence["_Daemon"], quota: tuple[int | None, int | None]) -> None:
    told = [daemon.told() for daemon in daemons]
    used = list(daemons[0].broker.stock.members.usage(key()).values())
    if not used or None in used:
        assert told == [None] * 3
        return
    parts = daemons[0].stock_parts()
    for k, rate in enumerate(quota):
        reported = [pair[k] for pair in told if pair is not None]
        own = sum(pair[k] for pair in used if pair is not None)
        assert len(reported) == 3
        assert min(reported) >= 0
        expected = 0 if rate is None else whole(own, rate, parts[k], PERIOD_NS)
        assert sum(reported) == expected
        assert own or not expected


def _pair(rates: Rates) -> tuple[int | None, int | None]:
    return rates.messages, rates.bytes


class _Daemon:
    """One of three that each want something; all of them live."""

    def __init__(self, name: str, quota: Rates, wanted: Sequence[int]) -> None:
        chosen = replace(BrokerSettings(Sender(name, 1)), stock_period_ns=PERIOD_NS)
        self.name, self.now = name, 0
        self.broker = Broker(chosen, Nanos(0))
        self._entries: dict[str, GroupUsage] = {}
        group = Group("gold", Limit(quota))
        self.do(PoliciesChanged(Nanos(0), PolicySnapshot({"gold": group})))
        self.do(Started(Nanos(0)))
        for other, want in zip(DAEMONS, wanted, strict=True):
            said = report(other, usage(want))
            if other != name:
                self.do(MessageReceived(Nanos(self.now), said))
            else:
                self.broker.membership.read_back(said, Nanos(self.now))
        self.broker.sharing.mode = Mode.LIVE
        self.broker.limiter.acquire(Request(messages=0, group="gold"), Nanos(0))

    def stock_parts(self) -> list[int]:
        """What stock brokers may have together."""
        sharing = self.broker.sharing
        slots = np.array([self.broker.index.slot(key())])
        index = sharing.broker_index
        shared = index.share_out(slots, sharing.quotas(slots), (), stock_is_hungry=True)
        parts: list[int] = shared.of_all()[0, index.is_stock].sum(axis=0).tolist()
        return parts

    def hear(self, said: StockReport) -> None:
        self.now += NS_PER_S // 10
        self.do(StockReportReceived(Nanos(self.now), said))
        self._work()

    def told(self) -> Pair | None:
        """What it reported last of publishing."""
        self.now += NS_PER_S // 10
        self._work()
        entry = self._entries.get("gold")
        return None if entry is None else entry.publish

    def do(self, event: Event) -> None:
        for effect in self.broker.handle(event):
            self._see(effect)

    def _work(self) -> None:
        stock = self.broker.stock
        while (due := stock.due_at(Nanos(self.now))) is not None and due <= self.now:
            for effect in stock.work(Nanos(self.now)):
                self._see(effect)

    def _see(self, effect: Effect) -> None:
        if isinstance(effect, SendStockReport):
            encode_stock_report(effect.report)
            if effect.report.broker == stock_name(self.name):
                self._entries |= {entry.group: entry for entry in effect.report.usage}
