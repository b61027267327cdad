"""What the exchange of PIP-82's case takes: bytes over all brokers, and the processor's time of an entry.

    python bench/wire.py [--json] [--passes 5]

The PIP's cluster: 100,000 groups with names of 80 letters, each on 5 of 100 brokers; an entry is a group on a
broker. Every entry has a row of each kind, with wanted and admitted messages and bytes. Rates are log-uniform
from 1 to 100,000 messages a second, message sizes lognormal (median 1,000 bytes, sigma 1), 1 to 19 topics;
30 % of the groups are refused 0 to 70 % of what they want. Rates are estimates, so they are not whole
counts of a period. `full_` is a round in which every broker sends every row, `tenth_` and `hundredth_` ones in which
each sends that part of its groups. All are summed over the 100 brokers. Names were sent before; `names_` is what they
take, once. `..._published_mb_a_minute` is that at the PIP's one round a minute, and `..._received_gb_a_minute` what
all 100 brokers receive of it together.

`long_` is the same with rates as columns of varints, for receivers that do not read codes. `pulsar_dialect_` is
what rgd writes and reads for stock brokers, and `pulsar_` the same messages by the protobuf library alone:
`_parse_` makes its message, `_read_` takes all numbers and names out of it, as a reader must. These have no
demand. `decode_` is a receiver's whole work: bytes to columns; `keep_` is that and taking them into the usage map.

Sizes are as published (compact messages are compressed by zstd). Not measured: LZ4 around Pulsar's
messages, which its client does; the way through a broker.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final

import numpy as np

from bench.harness import Figures, run
from rgd.core.exchange.columns import Ints, UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.precision import rounded
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import MILLI, Pair
from rgd.wire.codec import decode, encode
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.pulsar_usage import decode_stock_report, encode_stock_report
from rgd.wire.resource_usage_pb2 import NetworkUsage, ResourceUsage, ResourceUsageInfo

GROUPS: Final = 100_000
BROKERS: Final = 100
BROKERS_A_GROUP: Final = 5
ENTRIES: Final = GROUPS * BROKERS_A_GROUP
NAME_BYTES: Final = 80
#: What the PIP reckons for a round: 500,000 entries of 112 bytes.
PIP_BYTES: Final = 56e6
TENTH: Final = 0.1
HUNDREDTH: Final = 0.01
PERIOD_NS: Final = 1_000_311_420

#: Different rounds of each size, measured in turn, so that no report is like the one before it.
VARIANTS: Final = 2


@dataclass(frozen=True, slots=True)
class Speaker:
    """One broker's rows in rounds of each size; the first full round says all names."""

    sender: Sender
    full: Sequence[UsageColumns]
    tenth: Sequence[UsageColumns]
    hundredth: Sequence[UsageColumns]


class Cluster:
    """What 100 brokers report."""

    def __init__(self) -> None:
        dice = np.random.default_rng(82)
        self._names = [
            f"tenant-{group // 50:05}.ns-{group:07}.".ljust(NAME_BYTES, "x")
            for group in range(GROUPS)
        ]
        #: Each column of a fifth of the brokers has every group once.
        self.speakers = [
            self._speaker(
                dice, f"broker-{column * BROKERS // BROKERS_A_GROUP + place:03}", np.sort(groups)
            )
            for column in range(BROKERS_A_GROUP)
            for place, groups in enumerate(
                np.split(dice.permutation(GROUPS), BROKERS // BROKERS_A_GROUP)
            )
        ]

    def _speaker(self, dice: np.random.Generator, name: str, groups: Ints) -> Speaker:
        full = []
        for _ in range(VARIANTS):
            admitted, wanted = usage_of(dice, len(groups))
            rows = UsageColumns(
                groups=tuple(self._names[group] for group in groups.tolist() for _ in range(2)),
                kinds=np.tile(np.array([0, 1], np.uint8), len(groups)),
                topics=dice.integers(1, 20, 2 * len(groups)),
                admitted=rounded(admitted),
                wanted=rounded(wanted),
            )
            full.append(rows)
        tenth = [part_of(dice, rows, TENTH) for rows in full]
        # Dice of its own, so that the rounds before it stay the same.
        hundredth = [part_of(np.random.default_rng(1), rows, HUNDREDTH) for rows in full]
        return Speaker(Sender(name, 1), full, tenth, hundredth)


def part_of(dice: np.random.Generator, rows: UsageColumns, part: float) -> UsageColumns:
    """The rows of this part of the groups."""
    at = np.flatnonzero(dice.random(len(rows) // 2) < part)
    return rows.take(np.stack([2 * at, 2 * at + 1], 1).reshape(-1))


def usage_of(dice: np.random.Generator, groups: int) -> tuple[Ints, Ints]:
    """[2 * groups, 2] what is admitted and wanted, Milli per second."""
    rows = 2 * groups
    messages = 10 ** dice.uniform(0, 5, rows) * MILLI
    size = np.exp(dice.normal(np.log(1000), 1, rows))
    wanted = np.stack([messages, messages * size], 1)
    is_refused = np.repeat(dice.random(groups) < 0.3, 2)
    granted = np.where(is_refused, dice.uniform(0.3, 1, rows), 1)
    return (wanted * granted[:, None]).astype(np.int64), wanted.astype(np.int64)


class Compact:
    """The reports of all brokers in the compact dialect, round by round."""

    def __init__(self, speakers: Sequence[Speaker]) -> None:
        self._senders = [speaker.sender for speaker in speakers]
        self._encoders = [NameEncoder() for _ in speakers]
        self._full = [[speaker.full[of] for speaker in speakers] for of in range(VARIANTS)]
        self._tenth = [[speaker.tenth[of] for speaker in speakers] for of in range(VARIANTS)]
        hundredth = [[speaker.hundredth[of] for speaker in speakers] for of in range(VARIANTS)]
        self.names = self._encoded(self._full[0], is_state=True)
        self.full = [self._encoded(rows) for rows in self._full]
        self.tenth = [self._encoded(rows) for rows in self._tenth]
        self.hundredth = [self._encoded(rows) for rows in hundredth]

    def encoders(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """Two functions that write the next full round, and the next round of a tenth."""
        full, tenth = cycle(self._full), cycle(self._tenth)
        return lambda: self._encoded(next(full)), lambda: self._encoded(next(tenth))

    def _encoded(self, rows: Iterable[UsageColumns], *, is_state: bool = False) -> list[bytes]:
        return [
            encode(self._report(sender, of_sender, is_state=is_state), encoder)
            for sender, of_sender, encoder in zip(self._senders, rows, self._encoders, strict=True)
        ]

    def _report(self, sender: Sender, rows: UsageColumns, *, is_state: bool) -> Report:
        return Report(
            sender,
            1,
            PERIOD_NS,
            rows,
            full=is_state,
            rows_hash=1 << 62,
            members=BROKERS,
        )


class Receiver:
    """A reader of the compact dialect that has all names and rows, with its map."""

    def __init__(self, names: Iterable[bytes]) -> None:
        self._decoders = NameDecoders()
        self._usage = UsageMap()
        self.keep(names)

    def readers(
        self, rounds: Sequence[Sequence[bytes]]
    ) -> tuple[Callable[[], object], Callable[[], object]]:
        """Two functions that read the next round: to columns, and into the map."""
        decoded, kept = cycle(rounds), cycle(rounds)
        return lambda: self.decode(next(decoded)), lambda: self.keep(next(kept))

    def decode(self, messages: Iterable[bytes]) -> None:
        """Bytes to columns."""
        for data in messages:
            decode(data, self._decoders)

    def keep(self, messages: Iterable[bytes]) -> None:
        """Bytes into the usage map."""
        for data in messages:
            message = decode(data, self._decoders)
            assert isinstance(message, Report)
            assert len(message.rows)
            self._usage.apply(message)


def best_us(work: Callable[[], object], passes: int, entries: float) -> float:
    """Microseconds of the processor for an entry, in the best of some passes."""
    took = []
    for _ in range(passes):
        begun = time.process_time()
        work()
        took.append(time.process_time() - begun)
    return min(took) / entries * 1e6


def compact_figures(cluster: Cluster, passes: int) -> dict[str, float]:
    """Bytes and time of the compact dialect."""
    compact = Compact(cluster.speakers)
    receiver = Receiver(compact.names)
    names = total(compact.names) - total(compact.full[0])
    figures: dict[str, float] = {"names_bytes_per_entry": names / ENTRIES}
    tenth_entries = sum(len(rows) for one in cluster.speakers for rows in one.tenth) / 2 / VARIANTS
    encode_full, encode_tenth = compact.encoders()
    for name, encode_next, rounds, entries in (
        ("full", encode_full, compact.full, ENTRIES),
        ("tenth", encode_tenth, compact.tenth, tenth_entries),
    ):
        size = sum(map(total, rounds)) / VARIANTS
        decode_next, keep_next = receiver.readers(rounds)
        figures |= {
            f"{name}_mb": size / 1e6,
            f"{name}_bytes_per_entry": size / entries,
            f"{name}_encode_us": best_us(encode_next, passes, entries),
            f"{name}_decode_us": best_us(decode_next, passes, entries),
            f"{name}_keep_us": best_us(keep_next, passes, entries),
        }
    for name, rounds in (
        ("full", compact.full),
        ("tenth", compact.tenth),
        ("hundredth", compact.hundredth),
    ):
        published_mb = sum(map(total, rounds)) / VARIANTS / 1e6
        figures[f"{name}_published_mb_a_minute"] = published_mb
        figures[f"{name}_received_gb_a_minute"] = published_mb * BROKERS / 1e3
    figures["tenth_keep_to_full"] = (
        figures["tenth_keep_us"] * tenth_entries / (figures["full_keep_us"] * ENTRIES)
    )
    return figures


def stock_reports(speakers: Iterable[Speaker]) -> list[StockReport]:
    """The same as stock brokers say it: whole units of what was admitted in a period."""
    reports = []
    for speaker in speakers:
        rows = speaker.full[0]
        units = (rows.admitted // MILLI).tolist()
        names = rows.groups
        usage = (
            GroupUsage(names[at], Pair(*units[at]), Pair(*units[at + 1]))
            for at in range(0, len(names), 2)
        )
        reports.append(StockReport(f"pulsar://{speaker.sender.broker}:6650", tuple(usage)))
    return reports


def protobuf_of(report: StockReport) -> ResourceUsageInfo:
    """A stock report as the protobuf library's message."""
    info = ResourceUsageInfo(broker=report.broker)
    for usage in report.usage:
        assert usage.publish is not None
        assert usage.dispatch is not None
        info.usageMap.append(
            ResourceUsage(
                owner=usage.group,
                publish=NetworkUsage(
                    bytesPerPeriod=usage.publish.bytes, messagesPerPeriod=usage.publish.messages
                ),
                dispatch=NetworkUsage(
                    bytesPerPeriod=usage.dispatch.bytes, messagesPerPeriod=usage.dispatch.messages
                ),
            )
        )
    return info


def read_all(data: bytes) -> list[tuple[str, int, int, int, int]]:
    """Names and numbers of a stock report, by the protobuf library."""
    entries = []
    for usage in ResourceUsageInfo.FromString(data).usageMap:
        publish, dispatch = usage.publish, usage.dispatch
        entries.append(
            (
                usage.owner,
                publish.messagesPerPeriod,
                publish.bytesPerPeriod,
                dispatch.messagesPerPeriod,
                dispatch.bytesPerPeriod,
            )
        )
    return entries


def pulsar_figures(cluster: Cluster, passes: int) -> dict[str, float]:
    """Bytes and time of Pulsar's encoding, by rgd's dialect and by the protobuf library; a tenth of the brokers."""
    reports = stock_reports(cluster.speakers[:: BROKERS // 10])
    entries = sum(len(report.usage) for report in reports)
    messages = [encode_stock_report(report) for report in reports]
    protos = [protobuf_of(report) for report in reports]
    assert [proto.SerializeToString() for proto in protos] == messages

    def each(work: Callable[[bytes], object]) -> float:
        return best_us(lambda: [work(data) for data in messages], passes, entries)

    return {
        "pulsar_mb": total(messages) / entries * ENTRIES / 1e6,
        "pulsar_bytes_per_entry": total(messages) / entries,
        "pulsar_write_us": best_us(
            lambda: [protobuf_of(report).SerializeToString() for report in reports], passes, entries
        ),
        "pulsar_parse_us": each(ResourceUsageInfo.FromString),
        "pulsar_read_us": each(read_all),
        "pulsar_dialect_encode_us": best_us(
            lambda: [encode_stock_report(report) for report in reports], passes, entries
        ),
        "pulsar_dialect_decode_us": each(decode_stock_report),
    }


def total(messages: Iterable[bytes]) -> int:
    """Bytes of all messages."""
    return sum(map(len, messages))


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    cluster = Cluster()
    figures: dict[str, float] = {"entries": ENTRIES}
    figures |= compact_figures(cluster, options.passes)
    figures |= pulsar_figures(cluster, options.passes)
    figures["full_to_pip"] = figures["full_mb"] * 1e6 / PIP_BYTES
    figures["tenth_to_pip"] = figures["tenth_mb"] * 1e6 / PIP_BYTES
    figures["pulsar_read_to_keep"] = figures["pulsar_read_us"] / figures["full_keep_us"]
    figures["pulsar_parse_to_keep"] = figures["pulsar_parse_us"] / figures["full_keep_us"]
    return {name: round(value, 4) for name, value in figures.items()}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--passes", type=int, default=5, help="how often each time is measured")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
