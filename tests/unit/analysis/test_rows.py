"""Records become rows with exactly the declared columns.

Not covered: how Spark takes the batches (tests/integration/spark).
"""

from pathlib import Path
from typing import Any

import pyarrow as pa

from rgd.analysis.discovery import Segment
from rgd.analysis.rows import batches
from rgd.analysis.segments import Contents, Damage, read_segment
from tests.support.log_maker import START_MS, LogMaker, Usage, log_of


def made(segment: Path, **options: Any) -> list[Any]:
    return list(batches("s", read_segment(Segment.of(segment), Contents("s")), **options))


def test_an_entry_without_broker_metadata_has_the_producers_time_and_no_index(
    tmp_path: Path,
) -> None:
    segment = log_of(tmp_path, "broker-1", (1, Usage("gold", 1)), has_broker_metadata=False)
    (batch,) = made(segment)

    assert batch["index"].to_pylist() == [None]
    assert batch["broker_timestamp"].to_pylist() == [START_MS + 1000]


def test_damage_is_a_row_with_its_place_and_reason_only() -> None:
    (batch,) = batches("s", [Damage(7, 99, "checksum")])

    (row,) = batch.to_pylist()
    known = {name: value for name, value in row.items() if value is not None}
    assert known == {"segment": "s", "offset": 7, "damage": "checksum"}


def test_batches_end_with_whole_records(tmp_path: Path) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    usages = [Usage(f"group-{number}", admitted=1) for number in range(4)]
    maker.rounds(5, *usages)
    segment = maker.close()

    assert [batch.num_rows for batch in made(segment, rows_max=6)] == [8, 8, 4]
    assert pa.Table.from_batches(made(segment, rows_max=6)).num_rows == 20
