"""What a report of PIP-82's case costs: 5,000 groups of one broker, in bytes a row and rows a second.

    python bench/wire.py [--json]

One row a group (publish), with heavy-tailed rates, totals of an hour and some groups refused, encoded
by `rgd.wire.codec`; beside it, in the same run, the same groups and rates in what stock Pulsar brokers
say (`ResourceUsageInfo`). Ours carries more: what was wanted, totals, a sequence and a hash. `bare_`
is our message without totals and with nothing refused: the fields that Pulsar's has.
Ours is compressed where that makes it smaller; `pulsar_zstd_` is Pulsar's compressed the same way.
Not measured: the way through a broker.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from rgd.core.exchange.messages import Report, Speaker, UsageRow
from rgd.core.units import MILLI, NS_PER_S, Kind, Pair
from rgd.wire.codec import decode, encode
from rgd.wire.pulsar_usage import (
    GroupUsage,
    StockReport,
    decode_stock_report,
    encode_stock_report,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GROUPS: Final = 5_000
REPEATS: Final = 15
#: Totals are those of so many seconds.
UPTIME_S: Final = 3600

Told = TypeVar("Told")


def row(number: int, dice: random.Random) -> UsageRow:
    """A group's row: rates of whole counts in a second, as a meter makes them."""
    messages = round(20 * dice.paretovariate(1.2))
    admitted = Pair(messages * MILLI, messages * dice.randrange(100, 2000) * MILLI)
    more = dice.randrange(messages) if dice.random() < 0.2 else 0
    wanted = Pair(admitted.messages + more * MILLI, admitted.bytes)
    return UsageRow(
        group=f"tenant-{number // 10:04}-group-{number % 10}",
        kind=Kind.PUBLISH,
        topics=dice.randrange(1, 20),
        admitted=admitted,
        wanted=wanted,
        admitted_total=_in_total(admitted),
        wanted_total=_in_total(wanted),
    )


def _in_total(rate: Pair) -> Pair:
    return Pair(rate.messages * UPTIME_S // MILLI, rate.bytes * UPTIME_S // MILLI)


def bare(full: UsageRow) -> UsageRow:
    """Only what Pulsar's report has."""
    return replace(full, topics=0, wanted=full.admitted, admitted_total=Pair(), wanted_total=Pair())


def reports() -> tuple[Report, Report, StockReport]:
    """The same usage three times: ours, ours without more than Pulsar has, and Pulsar's."""
    dice = random.Random(82)
    rows = tuple(row(number, dice) for number in range(GROUPS))
    ours = Report(Speaker("broker-1", 1 << 60), 7, NS_PER_S, rows, full=True, rows_hash=1 << 62)
    stock = StockReport(
        "pulsar://broker-1.example:6650",
        tuple(
            GroupUsage(
                one.group,
                publish=Pair(one.admitted.messages // MILLI, one.admitted.bytes // MILLI),
            )
            for one in rows
        ),
    )
    return ours, replace(ours, rows=tuple(map(bare, rows))), stock


def rows_per_s(work: Callable[[], object]) -> int:
    """Rows a second, at best."""
    took = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return round(GROUPS / min(took))


def figures_of(
    name: str, message: Told, encode_: Callable[[Told], bytes], decode_: Callable[[bytes], Told]
) -> dict[str, float]:
    """Size and speed of one way to write a message."""
    data = encode_(message)
    assert decode_(data) == message
    return {
        f"{name}bytes_per_row": round(len(data) / GROUPS, 2),
        f"{name}encode_rows_per_s": rows_per_s(lambda: encode_(message)),
        f"{name}decode_rows_per_s": rows_per_s(lambda: decode_(data)),
    }


def decode_report(data: bytes) -> Report:
    """Read what must be a report."""
    message = decode(data)
    assert isinstance(message, Report)
    return message


def measure() -> dict[str, float]:
    """All figures."""
    ours, bare_ours, stock = reports()
    figures: dict[str, float] = {"groups": GROUPS}
    figures |= figures_of("", ours, encode, decode_report)
    figures |= figures_of("bare_", bare_ours, encode, decode_report)
    figures |= figures_of("pulsar_", stock, encode_stock_report, decode_stock_report)
    compressed = zstd.compress(encode_stock_report(stock))
    figures["pulsar_zstd_bytes_per_row"] = round(len(compressed) / GROUPS, 2)
    for name in ("bytes_per_row", "encode_rows_per_s", "decode_rows_per_s"):
        figures[f"{name}_to_pulsar"] = round(figures[name] / figures[f"pulsar_{name}"], 2)
    return figures


def main() -> None:
    """Measure, print a table or one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    options = parser.parse_args()
    figures = measure()
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value:>12,}")


if __name__ == "__main__":
    main()
