"""Shards in messages: numbers of shards, and the sequences of a sender's reports of each.

Law: the readers here return only what the core can use, or raise a `WireError`.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rgd.core.exchange.limits import SHARDS_MAX
from rgd.core.exchange.shards import LAYOUTS_MAX, WHOLE, Shard
from rgd.wire import usage_pb2
from rgd.wire.columns import as_counts, read_columns, write_columns
from rgd.wire.errors import Malformed, Reason
from rgd.wire.parts import check_size

_SEQUENCES: Final = ("sequences",)


def checked_shard(number: int, count: int) -> Shard:
    """A shard; 0 of 0 is `WHOLE`."""
    if count == 0 and number == 0:
        return WHOLE
    if not 2 <= count <= SHARDS_MAX or not 0 <= number < count:
        raise Malformed(Reason.BAD_NUMBER, f"shard: there is no shard {number} of {count}")
    return Shard(number, count)


def written_count(shards: int) -> int:
    """A number of shards as it is written; 1 takes no byte."""
    if not 1 <= shards <= SHARDS_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"shards: expected 1 to {SHARDS_MAX}, got {shards}")
    return 0 if shards == 1 else shards


def read_count(shards: int) -> int:
    """A number of shards that was read."""
    if shards > SHARDS_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"shards: expected at most {SHARDS_MAX}, got {shards}")
    return max(1, shards)


def write_sequences(layouts: Sequence[Sequence[int]], proto: usage_pb2.Report) -> None:
    """Write the sequences of each layout."""
    for sequences in layouts:
        layout = proto.layouts.add()
        layout.shards = written_count(len(sequences))
        write_columns(layout, _SEQUENCES, np.array(sequences, np.int64))


def read_sequences(layouts: Sequence[usage_pb2.Layout]) -> tuple[tuple[int, ...], ...]:
    """Read the sequences of each layout: a number for each of its shards."""
    check_size("layouts", len(layouts), LAYOUTS_MAX)
    return tuple(map(_read_layout, layouts))


def _read_layout(layout: usage_pb2.Layout) -> tuple[int, ...]:
    count = read_count(layout.shards)
    if count == 1:
        raise Malformed(Reason.BAD_NUMBER, "layout: it has one shard")
    return tuple(as_counts(read_columns([layout], _SEQUENCES, [count])[0], "sequences").tolist())
