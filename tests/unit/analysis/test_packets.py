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
from rgd.analysis.packets import joined, packed, unpacked
from rgd.analysis.reading import segment_pieces
from rgd.analysis.schema import PIECES, arrow
from rgd.core.units import Kind
from tests.support.log_maker import LogMaker, Usage


def through_packets(pieces: list[pa.RecordBatch]) -> list[pa.Table]:
    """What the tasks of three buckets get, as Spark's shuffle hands packets over."""
    sent = list(packed(pieces, 3))
    return [
        batch for of in range(3) for batch in unpacked((one for one in sent if one[0] == of), 2)
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
    ]

    tables = through_packets(pieces)
    found = pa.concat_tables(tables).to_pylist()

    given = pa.Table.from_batches(pieces).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, given))
    keys = [{(row["group"], row["kind"]) for row in table.to_pylist()} for table in tables]
    # Ten pieces of each group are more than two, so that it is alone; what segments say has no group.
    assert sorted(map(len, keys)) == [1] * 15
    assert len(set().union(*keys)) == 15


def test_what_every_segment_says_of_groups_comes_out_once() -> None:
    said = [{"group": "g", "stats": f"tenant:t{number}"} for number in (1, 2)]
    segments = [{"stats": text} for text in ("the first", "the second", "the first")]
    given = [pa.RecordBatch.from_pylist([*said, one], arrow(PIECES)) for one in segments]

    found = pa.concat_tables(through_packets(given)).select(["group", "stats"]).to_pylist()

    expected = [*said, *({"group": None} | one for one in segments)]
    assert sorted(map(str, found)) == sorted(map(str, expected))


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
