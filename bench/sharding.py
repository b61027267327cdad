"""What a daemon reads and holds of PIP-82's cluster, by how many of 16 shards it reads, and without shards.

    python bench/sharding.py [--json]

100 brokers, 100,000 groups with names of 80 characters, each on 5 brokers, in both kinds; rates are log-uniform from 1 to
1e5 messages a second, 30 % of groups refuse some. Bytes are those of the other 99 brokers' reports of one round in which every row
is sent and all names are known, as they come from the topics; `_first_` is the full state with all names. Time is that of
decoding and keeping them, processor time. Heartbeats on the exchange's topic are told apart: they come with any number of
shards. Not measured: the way through a broker.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from bench.harness import run
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.precision import rounded
from rgd.core.exchange.shards import WHOLE, Shard, name_hash, numbers_of
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.units import MILLI
from rgd.wire.codec import decode, encode
from rgd.wire.name_dictionary import NameDecoders, NameEncoder

BROKERS: Final = 100
GROUPS: Final = 100_000
BROKERS_A_GROUP: Final = 5
NAME_BYTES: Final = 80
PERIOD_NS: Final = 1_000_311_420
SHARDS: Final = 16
#: Numbers of shards that a daemon may read.
READ: Final = (1, 2, 4, 16)
#: No sender has more rows of a part than fit one message.
PART_ROWS: Final = 4_000
SEED: Final = 82


class Told(NamedTuple):
    """The payloads of one broker in one shard."""

    first: list[bytes]
    steady: list[bytes]


def rows_of(dice: np.random.Generator, groups: Sequence[str]) -> UsageColumns:
    """A row of each group in each kind."""
    count = 2 * len(groups)
    messages = 10 ** dice.uniform(0, 5, count) * MILLI
    wanted = np.stack([messages, messages * np.exp(dice.normal(np.log(1000), 1, count))], 1)
    refuses = np.repeat(dice.random(len(groups)) < 0.3, 2)
    granted = np.where(refuses, dice.uniform(0.3, 1, count), 1)
    return UsageColumns(
        groups=tuple(group for group in groups for _ in range(2)),
        kinds=np.tile(np.array([0, 1], np.uint8), len(groups)),
        topics=dice.integers(1, 20, count),
        admitted=rounded((wanted * granted[:, None]).astype(np.int64)),
        wanted=rounded(wanted.astype(np.int64)),
    )


def told_in(sender: Sender, shard: Shard, rows: UsageColumns) -> Told:
    """A broker's full state, and a round in which it sends every row again."""
    encoder, sequence = NameEncoder(), 0
    rounds: list[list[bytes]] = []
    for _ in range(2):
        payloads = []
        for begin in range(0, len(rows), PART_ROWS):
            sequence += 1
            part = rows.take(slice(begin, begin + PART_ROWS))
            report = Report(sender, sequence, PERIOD_NS, part, rows_hash=1 << 62, shard=shard)
            payloads.append(encode(report, encoder))
        rounds.append(payloads)
    return Told(*rounds)


def cluster() -> Iterator[tuple[Sender, UsageColumns]]:
    """What each of the other brokers advertises."""
    dice = np.random.default_rng(SEED)
    names = [
        f"tenant-{group // 50:05}.ns-{group:07}.".ljust(NAME_BYTES, "x") for group in range(GROUPS)
    ]
    each = BROKERS // BROKERS_A_GROUP
    for column in range(BROKERS_A_GROUP):
        for place, groups in enumerate(np.split(dice.permutation(GROUPS), each)):
            number = column * each + place
            if number:
                some = [names[group] for group in np.sort(groups).tolist()]
                yield Sender(f"broker-{number:03}", 1), rows_of(dice, some)


def read(told: Sequence[Told]) -> dict[str, float]:
    """What it takes to read and hold all of these."""
    names, usage = NameDecoders(), UsageMap()
    for one in told:
        _keep(one.first, names, usage)
    begun = time.process_time()
    for one in told:
        _keep(one.steady, names, usage)
    seconds = time.process_time() - begun
    return {
        "messages": sum(len(one.steady) for one in told),
        "kb": sum(len(payload) for one in told for payload in one.steady) / 1e3,
        "first_kb": sum(len(payload) for one in told for payload in one.first) / 1e3,
        "ms": seconds * 1e3,
        "rows": sum(usage.count_of(broker) for broker in usage.brokers()),
        "map_mb": usage.nbytes / 1e6,
    }


def _keep(payloads: Sequence[bytes], names: NameDecoders, usage: UsageMap) -> None:
    for payload in payloads:
        message = decode(payload, names)
        assert isinstance(message, Report)
        usage.apply(message)


def heartbeat_bytes(layout: int) -> int:
    """A heartbeat after an hour of rounds in which every shard had a report."""
    sequences = ((3600,) * layout,) if layout > 1 else ()
    sender = Sender("broker-000.brokers.pulsar", 1 << 61)
    report = Report(
        sender,
        3600,
        PERIOD_NS,
        rows_hash=1 << 62,
        members=BROKERS,
        shards=layout,
        shard_sequences=sequences,
    )
    return len(encode(report))


def measure(_options: argparse.Namespace) -> dict[str, float]:
    """All figures, by how much is read."""
    whole: list[Told] = []
    shards: dict[int, list[Told]] = defaultdict(list)
    for sender, rows in cluster():
        whole.append(told_in(sender, WHOLE, rows))
        hashes = np.fromiter(map(name_hash, rows.groups), np.uint32, len(rows))
        numbers = numbers_of(hashes, SHARDS)
        for number in range(SHARDS):
            some = rows.take(np.flatnonzero(numbers == number))
            shards[number].append(told_in(sender, Shard(number, SHARDS), some))
    figures = {f"without_{name}": value for name, value in read(whole).items()}
    for count in READ:
        told = [one for number in range(count) for one in shards[number]]
        figures |= {f"{count}_of_{SHARDS}_{name}": value for name, value in read(told).items()}
    figures["heartbeat_bytes"] = heartbeat_bytes(1)
    figures["sharded_heartbeat_bytes"] = heartbeat_bytes(SHARDS)
    return {name: round(value, 2) for name, value in figures.items()}


if __name__ == "__main__":
    run(__doc__, measure)
