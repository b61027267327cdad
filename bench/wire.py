"""What the exchange of PIP-82's case takes: bytes over all brokers, and the processor's time of an entry.

    python bench/wire.py [--json] [--passes 5]

The PIP's cluster: 100,000 groups with names of 80 letters, each on 5 of 100 brokers; an entry is a group on a
broker. Every entry has a row of each kind, with wanted and admitted messages and bytes. Rates are log-uniform
from 1 to 100,000 messages a second, message sizes lognormal (median 1,000 bytes, sigma 1), 1 to 19 topics;
30 % of the groups are refused 0 to 70 % of what they want. Rates are estimates, so they are not whole
counts of a period. `full_` is a round in which every broker sends every row, `tenth_` one in which each sends a tenth
of its groups. Both are summed over the 100 brokers. Names were sent before; `names_` is what they take, once.

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
from typing import Final

import numpy as np

from bench.harness import Figures, run
from rgd.core.exchange.columns import Ints, UsageColumns
from rgd.core.exchange.messages import Message, Report, Sender
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
PERIOD_NS: Final = 1_000_311_420

#: Rounds of a report: full states that say all names, full rounds, and rounds of a tenth.
FIRST, FULL, PART = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Speaker:
    """One broker's usage, and which of its rows a round of a tenth sends."""

    sender: Sender
    rows: UsageColumns
    part: Ints


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
        admitted, wanted = usage_of(dice, len(groups))
        rows = UsageColumns(
            groups=tuple(self._names[group] for group in groups.tolist() for _ in range(2)),
            kinds=np.tile(np.array([0, 1], np.uint8), len(groups)),
            topics=dice.integers(1, 20, 2 * len(groups)),
            admitted=rounded(admitted),
            wanted=rounded(wanted),
        )
        part = np.flatnonzero(dice.random(len(groups)) < TENTH)
        return Speaker(Sender(name, 1), rows, np.stack([2 * part, 2 * part + 1], 1).reshape(-1))


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
    """The reports of all brokers in the compact dialect, in the order of a receiver's reading."""

    def __init__(self, speakers: Sequence[Speaker], *, is_short: bool) -> None:
        self._is_short = is_short
        self._speakers = speakers
        self._encoders = [NameEncoder() for _ in speakers]
        self.first = self._encoded(FIRST)
        self.full = self._encoded(FULL)
        self.part = self._encoded(PART)

    def encode_all(self, round_: int) -> None:
        """Write all reports of a round once more, all names known."""
        self._encoded(round_)

    def _encoded(self, round_: int) -> list[bytes]:
        return [
            encode(self._report(speaker, round_), encoder)
            for speaker, encoder in zip(self._speakers, self._encoders, strict=True)
        ]

    def _report(self, speaker: Speaker, round_: int) -> Report:
        rows = speaker.rows.take(speaker.part) if round_ == PART else speaker.rows
        return Report(
            speaker.sender,
            round_,
            PERIOD_NS,
            rows,
            full=round_ == FIRST,
            rows_hash=1 << 62,
            members=BROKERS,
            is_short=self._is_short,
        )

    def receiver(self) -> "Receiver":
        """Somebody who has all names and rows."""
        receiver = Receiver()
        receiver.keep(self.first)
        receiver.keep(self.full)
        return receiver


class Receiver:
    """A reader of the compact dialect, with its map."""

    def __init__(self) -> None:
        self._decoders = NameDecoders()
        self._usage = UsageMap()

    def decode(self, messages: Iterable[bytes]) -> list[Message]:
        """Bytes to columns."""
        return [decode(data, self._decoders) for data in messages]

    def keep(self, messages: Iterable[bytes]) -> None:
        """Bytes into the usage map."""
        for data in messages:
            message = decode(data, self._decoders)
            assert isinstance(message, Report)
            assert len(message.rows)
            self._usage.apply(message)


def best_us(work: Callable[[], object], passes: int, entries: int) -> float:
    """Microseconds of the processor for an entry, in the best of some passes."""
    took = []
    for _ in range(passes):
        begun = time.process_time()
        work()
        took.append(time.process_time() - begun)
    return min(took) / entries * 1e6


def compact_figures(cluster: Cluster, passes: int, *, is_short: bool) -> dict[str, float]:
    """Bytes and time of one form of the compact dialect."""
    compact = Compact(cluster.speakers, is_short=is_short)
    receiver = compact.receiver()
    figures: dict[str, float] = {
        "names_bytes_per_entry": (total(compact.first) - total(compact.full)) / ENTRIES
    }
    part_entries = sum(len(speaker.part) for speaker in cluster.speakers) // 2
    for name, round_, messages, entries in (
        ("full", FULL, compact.full, ENTRIES),
        ("tenth", PART, compact.part, part_entries),
    ):
        figures |= {
            f"{name}_mb": total(messages) / 1e6,
            f"{name}_bytes_per_entry": total(messages) / entries,
            f"{name}_encode_us": best_us(lambda of=round_: compact.encode_all(of), passes, entries),
            f"{name}_decode_us": best_us(lambda of=messages: receiver.decode(of), passes, entries),
            f"{name}_keep_us": best_us(lambda of=messages: receiver.keep(of), passes, entries),
        }
    figures["tenth_keep_to_full"] = (
        figures["tenth_keep_us"] * part_entries / (figures["full_keep_us"] * ENTRIES)
    )
    return figures


def stock_reports(speakers: Iterable[Speaker]) -> list[StockReport]:
    """The same as stock brokers say it: whole units of what was admitted in a period."""
    reports = []
    for speaker in speakers:
        units = (speaker.rows.admitted // MILLI).tolist()
        names = speaker.rows.groups
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
    figures |= compact_figures(cluster, options.passes, is_short=True)
    for name, value in compact_figures(cluster, options.passes, is_short=False).items():
        if name.endswith(("mb", "per_entry", "us")) and not name.startswith("names"):
            figures[f"long_{name}"] = value
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
