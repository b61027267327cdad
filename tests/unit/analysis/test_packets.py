"""Pieces come out of packets as they went in, whole groups together.

Not covered: Spark's shuffle of packets (tests/integration/spark).
"""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.analysis import packets
from rgd.analysis.discovery import find_segments
from rgd.analysis.log_facts import Stats
from rgd.analysis.packets import joined, packed, unpacked
from rgd.analysis.reading import segment_pieces
from rgd.analysis.segments import Contents
from rgd.core.units import Kind
from tests.support.log_maker import LogMaker, Usage


def through_packets(pieces: list[pa.RecordBatch]) -> list[pa.Table]:
    """What the tasks of three buckets get, as Spark's shuffle hands packets over."""
    sent = list(packed(pieces, 3))
    return [
        batch
        for of in range(3)
        for batch in unpacked([one for to, one in sent if to == of and isinstance(one, bytes)], 2)
    ]


@pytest.mark.parametrize("packed_max", [1, 10_000])
def test_every_piece_comes_out_once_with_those_of_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed_max: int
) -> None:
    monkeypatch.setattr(packets, "PACKED_MAX", packed_max)
    for broker in ("b1", "b2"):
        maker = LogMaker(tmp_path / broker, broker)
        names = [f"group-{number}" for number in range(7)]
        maker.rounds(5, *(Usage(name, 1, kind=kind) for name in names for kind in Kind))
        maker.close()
    pieces = [
        batch
        for segment in find_segments([str(tmp_path)])
        for batch in segment_pieces(segment, 1000, round_ms=1000.0)
        if not isinstance(batch, Stats)
    ]

    tables = through_packets(pieces)
    found = pa.concat_tables(tables).to_pylist()

    given = pa.Table.from_batches(pieces).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, given))
    keys = [{(row["group"], row["kind"]) for row in table.to_pylist()} for table in tables]
    # Ten pieces of each group are more than two, so that it is alone.
    assert sorted(map(len, keys)) == [1] * 14
    assert len(set().union(*keys)) == 14


def test_an_attachment_is_sent_once_and_a_segment_that_was_given_twice_twice() -> None:
    """As in a log and the lake of it: otherwise nobody notices that counts are doubled."""
    attached = {("g", "tenant:t1"), ("g", "tenant:t2")}
    names = ["the first", "the second", "the first"]
    given = [Stats(Contents(name, attached=set(attached)), []) for name in names]

    sent = list(packed(given, 3))

    assert [bucket for bucket, _ in sent] == [0, 0, 0]
    stats = [one for _, one in sent if isinstance(one, Stats)]
    assert [one.contents.segment for one in stats] == names
    assert [one.contents.attached for one in stats] == [attached, set(), set()]


@given(st.lists(st.integers(0, 5)), st.integers(1, 100))
def test_batches_are_joined_in_their_order_until_they_have_the_bytes(
    lengths: list[int], size: int
) -> None:
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    batches = [
        pa.table({"row": pa.array(range(start, start + length), pa.int64())})
        for start, length in zip(starts, lengths, strict=True)
    ]
    tables = list(joined(batches, size))
    assert [row for table in tables for row in table["row"].to_pylist()] == list(
        range(sum(lengths))
    )
    assert all(table.nbytes >= size for table in tables[:-1])
    assert all(table.nbytes < size + max(map(len, batches)) * 8 for table in tables)
