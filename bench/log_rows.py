"""A round of PIP-82's case as the usage log has it: 5,000 groups of one broker, for `bench/usagelog.py`.

    python bench/log_rows.py [--json]

Heavy-tailed rates, some groups refused, totals of an hour. The period is not exactly a second, as it never
is. By itself this measures records that each stand for themselves, as the first one of a segment does.
"""

import argparse
import random
from typing import Final

import numpy as np

from bench.harness import Figures, best_s, run
from rgd.core.exchange.columns import ShareColumns, UsageColumns
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI, NS_PER_S, Kind, Pair
from rgd.wire.frame import Entry
from rgd.wire.log_records import LogEncoder, LogReader, Payload

GROUPS: Final = 5_000
#: Totals are those of so many periods.
UPTIME_PERIODS: Final = 3600
PERIOD_NS: Final = 1_000_311_420


def counts_of(dice: random.Random) -> tuple[Pair, Pair]:
    """What a group admitted and wanted in the period, in whole units."""
    messages = round(20 * dice.paretovariate(1.2))
    admitted = Pair(messages, messages * dice.randrange(100, 2000))
    more = dice.randrange(messages) if dice.random() < 0.2 else 0
    return admitted, Pair(messages + more, admitted.bytes)


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
            name = f"tenant-{number // 10:04}-group-{number % 10}"
            topics = dice.randrange(1, 20)
            rows.append(UsageRow(name, kind, topics, rate_of(admitted), rate_of(wanted)))
            counts.append(admitted)
    return UsageColumns.of(*rows), counts


def record_of(rows: UsageColumns) -> RoundRecord:
    """The rows in the log: a share of twice what was admitted, bytes unlimited."""
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
    return RoundRecord(
        Sender("broker-1", 1 << 60),
        7,
        PERIOD_NS,
        shares,
        peers=(("broker-2", 7),),
        peer_incarnations=(7,),
    )


def measure(_: argparse.Namespace) -> Figures:
    """Size and speed of records that continue no other one."""
    record = record_of(rows_of(Kind.PUBLISH)[0])
    encoder = LogEncoder()

    def written() -> Payload:
        encoder.restart()
        return encoder.encode(record)

    payload = written()
    entry = Entry("b", 1, 2, payload.data, payload.properties, unknown=payload.metadata)
    assert LogReader().read(entry) == record
    return {
        "bytes_per_row": round(len(payload.data) / GROUPS, 2),
        "encode_rows_per_s": round(GROUPS / best_s(written)),
        "decode_rows_per_s": round(GROUPS / best_s(lambda: LogReader().read(entry))),
    }


if __name__ == "__main__":
    run(__doc__, measure)
