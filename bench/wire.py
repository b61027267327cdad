"""What a report of PIP-82's case costs: 5,000 groups of one broker, in bytes a row and rows a second.

    python bench/wire.py [--json]

One row a group (publish), with heavy-tailed rates and some groups refused, encoded by `rgd.wire.codec`;
beside it, in the same run, the same groups and rates in what stock Pulsar brokers say
(`ResourceUsageInfo`). Ours carries more: what was wanted, topics, a sequence and a hash. `bare_` has
neither topics nor anything refused: the fields that Pulsar's has. `both_kinds_` is an entry of a group
with a row of each kind, as PIP-82 reckons one. `record_` is the same rows, with the totals of an hour,
as a record of version 1 of the usage log, which compresses nothing.
The period is not exactly a second, as it never is.
Ours is compressed where that makes it smaller; `pulsar_zstd_` is Pulsar's compressed the same way.
Not measured: the way through a broker.
"""

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np

from bench.harness import best_s, run
from rgd.core.exchange.columns import ShareColumns, UsageColumns
from rgd.core.exchange.messages import Report, RoundRecord, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.shares.columns import NO_RATE
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import MILLI, NS_PER_S, Kind, Pair
from rgd.wire.codec import decode, encode
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.pulsar_usage import decode_stock_report, encode_stock_report
from rgd.wire.record import decode_record, encode_record

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GROUPS: Final = 5_000
#: Totals are those of so many periods.
UPTIME_PERIODS: Final = 3600
PERIOD_NS: Final = 1_000_311_420
SPEAKER: Final = Sender("broker-1", 1 << 60)

Told = TypeVar("Told")


def counts_of(dice: random.Random) -> tuple[Pair, Pair]:
    """What a group admitted and wanted in the period, in whole units."""
    messages = round(20 * dice.paretovariate(1.2))
    admitted = Pair(messages, messages * dice.randrange(100, 2000))
    more = dice.randrange(messages) if dice.random() < 0.2 else 0
    return admitted, Pair(messages + more, admitted.bytes)


def row(number: int, kind: Kind, admitted: Pair, wanted: Pair, topics: int) -> UsageRow:
    """A group's row, with rates as a meter makes them."""
    return UsageRow(
        group=f"tenant-{number // 10:04}-group-{number % 10}",
        kind=kind,
        topics=topics,
        admitted=rate_of(admitted),
        wanted=rate_of(wanted),
    )


def rate_of(counts: Pair) -> Pair:
    """Counts of the period as rates."""
    return Pair(*(count * MILLI * NS_PER_S // PERIOD_NS for count in counts))


def rows_of(*kinds: Kind) -> tuple[UsageColumns, list[Pair]]:
    """A row of each kind for each group, and what each admitted."""
    dice = random.Random(82)
    rows, counts = [], []
    for number in range(GROUPS):
        for kind in kinds:
            admitted, wanted = counts_of(dice)
            rows.append(row(number, kind, admitted, wanted, dice.randrange(1, 20)))
            counts.append(admitted)
    return UsageColumns.of(*rows), counts


def bare(rows: UsageColumns) -> UsageColumns:
    """Only what Pulsar's report has."""
    return replace(rows, topics=np.zeros_like(rows.topics), wanted=rows.admitted)


def report_of(rows: UsageColumns) -> Report:
    """A full report."""
    return Report(SPEAKER, 7, PERIOD_NS, rows, full=True, rows_hash=1 << 62)


def stock_report_of(rows: UsageColumns, counts: list[Pair]) -> StockReport:
    """The same rates as a stock broker says them."""
    usage = (GroupUsage(*one) for one in zip(rows.groups, counts, strict=True))
    return StockReport("pulsar://broker-1.example:6650", tuple(usage))


def record_of(rows: UsageColumns) -> RoundRecord:
    """The same rows in the log: a share of twice what was admitted, bytes unlimited."""
    limited = np.stack([2 * rows.admitted[:, 0], np.full(GROUPS, NO_RATE)], axis=1)
    shares = ShareColumns(
        usage=rows,
        share=limited,
        quota=limited,
        policies=np.zeros(GROUPS, np.uint8),
        refused=(rows.wanted - rows.admitted) // MILLI,
        sent=np.ones(GROUPS, np.bool_),
        admitted_total=UPTIME_PERIODS * rows.admitted // MILLI,
        wanted_total=UPTIME_PERIODS * rows.wanted // MILLI,
    )
    return RoundRecord(SPEAKER, 7, PERIOD_NS, shares, peers=(("broker-2", 7),))


def figures_of(
    name: str, message: Told, encode_: Callable[[Told], bytes], decode_: Callable[[bytes], Told]
) -> dict[str, float]:
    """Size and speed of one way to write a message."""
    data = encode_(message)
    assert decode_(data) == message
    return {
        f"{name}bytes_per_row": round(len(data) / GROUPS, 2),
        f"{name}encode_rows_per_s": round(GROUPS / best_s(lambda: encode_(message))),
        f"{name}decode_rows_per_s": round(GROUPS / best_s(lambda: decode_(data))),
    }


def steady_figures(rows: UsageColumns) -> dict[str, float]:
    """A round's report where the names were told before and numbers stand for them."""
    numbering, name_decoders = NameEncoder(), NameDecoders()
    decode_report(encode(report_of(rows), numbering), name_decoders)
    # Names travel with every full report, so this one is none.
    report = replace(report_of(rows), full=False)
    return figures_of(
        "steady_",
        report,
        lambda told: encode(told, numbering),
        lambda data: decode_report(data, name_decoders),
    )


def decode_report(data: bytes, name_decoders: NameDecoders | None = None) -> Report:
    """Read what must be a report."""
    message = decode(data, name_decoders)
    assert isinstance(message, Report)
    return message


def measure(_: argparse.Namespace) -> dict[str, float]:
    """All figures."""
    rows, counts = rows_of(Kind.PUBLISH)
    both, _counts = rows_of(Kind.PUBLISH, Kind.DISPATCH)
    stock = stock_report_of(rows, counts)
    figures: dict[str, float] = {"groups": GROUPS}
    figures |= figures_of("", report_of(rows), encode, decode_report)
    figures |= steady_figures(rows)
    figures |= figures_of("bare_", report_of(bare(rows)), encode, decode_report)
    figures |= figures_of("record_", record_of(rows), encode_record, decode_record)
    figures |= figures_of("pulsar_", stock, encode_stock_report, decode_stock_report)
    for name, size in (
        ("both_kinds_bytes_per_entry", len(encode(report_of(both)))),
        ("pulsar_zstd_bytes_per_row", len(zstd.compress(encode_stock_report(stock)))),
    ):
        figures[name] = round(size / GROUPS, 2)
    for name in ("bytes_per_row", "encode_rows_per_s", "decode_rows_per_s"):
        figures[f"{name}_to_pulsar"] = round(figures[name] / figures[f"pulsar_{name}"], 2)
    return figures


if __name__ == "__main__":
    run(__doc__, measure)
