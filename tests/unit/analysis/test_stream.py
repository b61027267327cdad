"""A stream of a growing log has each row once, and says what it cannot read.

Not covered: Spark's side (tests/integration/spark/test_stream.py).
"""

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from rgd.adapters.usagelog.index import mend
from rgd.analysis.discovery import find_segments
from rgd.analysis.errors import DataLost
from rgd.analysis.partitions import SegmentPartition
from rgd.analysis.rows import batches
from rgd.analysis.segments import Contents, read_segment
from rgd.analysis.stream import Offset, RowsStream
from rgd.errors import ConfigError
from rgd.storage.manifest import TieredSegment
from rgd.storage.objects import Objects
from rgd.storage.tier import MANIFEST, LogTier, checksum_of
from tests.support.log_maker import LogMaker, Usage, log_of

GOLD, TRIAL = Usage("gold", admitted=10, wanted=20, quota=100), Usage("trial", admitted=1)

#: Damage is one row; its reason may be another where the segment ended early.
Row = tuple[str, int, int | None, str | None, float | None, bool]


def stream(*places: Path | str, **options: str) -> RowsStream:
    return RowsStream([str(place) for place in places], options)


def rows_of(found: Iterable[Any]) -> list[Row]:
    names = ("segment", "offset", "index", "group", "wanted_messages_total")
    return [
        (*(row[name] for name in names), row["damage"] is not None)
        for batch in found
        for row in batch.to_pylist()
    ]


def batch_of(source: RowsStream, start: Offset, end: Offset) -> list[Row]:
    parts = source.partitions(start, end)
    return [row for part in parts for row in rows_of(source.read(part))]


def newest(source: RowsStream, start: Offset) -> Offset:
    end = source.latestOffset(start, ReadAllAvailable())
    offset: Offset = json.loads(json.dumps(end))
    return offset


def table_of(place: Path) -> list[Row]:
    return [
        row
        for one in find_segments([str(place)])
        for row in rows_of(batches(one.name, read_segment(one, Contents(one.name))))
    ]


#: Where the field of the index begins: behind the length, the magic, the size, and the time.
INDEX_TAG = 4 + 2 + 4 + 1 + 6


def damaged(maker: LogMaker, place: int) -> None:
    stored = bytearray(maker.take_back())
    # Of the index's field one bit, so that nobody knows it.
    stored[place] ^= 0x08 if place == INDEX_TAG else 0x55
    maker.put_again(bytes(stored))


def torn(maker: LogMaker, poll: Callable[[], None]) -> None:
    """Let a reader see an entry that is being written."""
    stored = maker.take_back()
    with maker.flush().open("ab") as file:
        file.write(stored[:-7])
    poll()
    maker.put_again(stored[-7:])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rounds"), st.sampled_from([1, 2, 70])),
        st.tuples(st.just("damage"), st.sampled_from([-1, 0, 1, 2, 3, 4, 5, INDEX_TAG])),
        st.tuples(st.sampled_from(["roll", "torn", "foreign", "poll", "poll", "mark"]), st.just(0)),
    ),
    max_size=20,
)


@example([("rounds", 1), ("damage", INDEX_TAG), ("poll", 0), ("rounds", 1), ("poll", 0)])
# A segment ends with damage, and a batch where the segment ends: before the next one is there, and after.
@example([("damage", -1), ("poll", 0), ("roll", 0)])
@example([("damage", -1), ("roll", 0), ("poll", 0)])
@given(STEPS)
def test_each_row_is_in_one_batch_and_in_the_same_one_when_it_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    maker = LogMaker(folder, "b1", is_chained=True)
    maker.round(GOLD)
    maker.flush()
    offsets = [stream(folder).initialOffset()]
    read: list[list[Row]] = []

    def poll() -> None:
        # As after a restart: nothing is known but the offset.
        offsets.append(newest(stream(folder), offsets[-1]))
        read.append(batch_of(stream(folder), *offsets[-2:]))

    for step, number in [*steps, ("roll", 0), ("rounds", 1), ("poll", 0)]:
        if step == "rounds":
            maker.rounds(number, GOLD, TRIAL)
        elif step == "foreign":
            maker.append(b"somebody else's", (("app", "1"),))
        elif step == "roll":
            maker.roll()
        elif step == "mark":
            mend(maker.flush())
        elif step == "poll":
            maker.flush()
            poll()
        else:
            maker.round(GOLD)
            torn(maker, poll) if step == "torn" else damaged(maker, number)

    assert sorted((row for batch in read for row in batch), key=repr) == sorted(
        table_of(folder), key=repr
    )
    again = [batch_of(stream(folder), *pair) for pair in pairwise(offsets)]
    assert again == read


@pytest.fixture
def maker(tmp_path: Path) -> LogMaker:
    """Three segments of ten rounds and an open one of two."""
    maker = LogMaker(tmp_path / "logs" / "b1", "b1", is_chained=True)
    for _ in range(3):
        maker.rounds(10, GOLD)
        maker.roll()
    maker.rounds(2, GOLD)
    maker.flush()
    return maker


def test_only_segments_with_entries_of_the_batch_are_read(maker: LogMaker) -> None:
    log = str(maker.folder)
    parts = stream(log).partitions({log: 12}, {log: 28})

    names = [part.segment.name for part in parts if isinstance(part, SegmentPartition)]

    assert [int(Path(name).stem) for name in names] == [10, 20]
    assert stream(log).partitions({log: 32}, {log: 32}) == []


def test_a_batch_has_at_most_so_many_entries_and_the_query_ends_where_it_began_to_end(
    maker: LogMaker,
) -> None:
    log = str(maker.folder)
    source = stream(log, maxEntriesPerTrigger="12")
    source.prepareForTriggerAvailableNow()
    maker.rounds(5, GOLD)
    maker.flush()

    offsets = [source.initialOffset()]
    while (end := source.latestOffset(offsets[-1], source.getDefaultReadLimit())) != offsets[-1]:
        offsets.append(end)

    assert [offset[log] for offset in offsets] == [0, 12, 24, 32]
    other = log_of(maker.folder.parent, "b2", (20, GOLD)).parent
    both = stream(maker.folder.parent)
    assert both.latestOffset({log: 30}, ReadMaxRows(8)) == {log: 34, str(other): 4}


def test_deleted_entries_fail_the_query_or_are_passed_over(maker: LogMaker) -> None:
    log = str(maker.folder)
    for segment in find_segments([log])[:2]:
        Path(segment.path).unlink()

    assert [part.value for part in stream(log).partitions({log: 20}, {log: 22})]
    with pytest.raises(DataLost, match=r"entries 15 to 19 were not read: .*failOnDataLoss"):
        stream(log).partitions({log: 15}, {log: 22})
    passing = stream(log, failOnDataLoss="false")
    assert [row[2] for row in batch_of(passing, {log: 15}, {log: 22})] == [20, 21]
    assert passing.latestOffset({log: 3}, ReadMaxRows(4)) == {log: 24}
    gone = {"/a log that is not there": 7}
    assert passing.latestOffset(gone, ReadAllAvailable())[log]
    with pytest.raises(DataLost, match="it ends before entry 0, and 7 is next"):
        stream(log).latestOffset(gone, ReadAllAvailable())


def test_a_log_that_a_crash_shortened_fails_the_query_or_goes_on_at_its_end(
    maker: LogMaker,
) -> None:
    log = str(maker.folder)

    with pytest.raises(DataLost, match="it ends before entry 32, and 40 is next"):
        newest(stream(log), {log: 40})
    assert newest(stream(log, failOnDataLoss="false"), {log: 40}) == {log: 32}


def test_entries_without_a_broker_index_are_counted(tmp_path: Path) -> None:
    maker = LogMaker(tmp_path, "b1", has_broker_metadata=False)
    log, source = str(tmp_path), stream(tmp_path)
    maker.rounds(3, GOLD)
    maker.flush()
    first = newest(source, {log: 0})
    maker.roll()
    maker.rounds(2, GOLD)
    maker.flush()
    second = newest(source, first)

    assert (first, second) == ({log: 3}, {log: 5})
    read = [batch_of(source, *pair) for pair in pairwise([{log: 0}, {log: 2}, second])]
    assert [[row[4] for row in batch] for batch in read] == [[20, 40], [60, 80, 100]]


def test_damage_in_a_log_of_times_without_indexes_hides_no_later_entry(tmp_path: Path) -> None:
    maker = LogMaker(tmp_path, "b1")
    maker.has_index = False
    log, source = str(tmp_path), stream(tmp_path)
    maker.rounds(2, GOLD)
    maker.put_again(maker.take_back()[:-1] + b"?")
    maker.rounds(2, GOLD)
    maker.flush()
    first = newest(source, {log: 0})
    maker.rounds(2, GOLD)
    maker.flush()
    second = newest(source, first)

    assert (first, second) == ({log: 3}, {log: 5})
    read = [batch_of(source, *pair) for pair in pairwise([{log: 0}, first, second])]
    # The damage comes behind the three whole entries.
    assert [[row[5] for row in batch] for batch in read] == [[False] * 3 + [True], [False] * 2]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("startingOffsets", "1"),
        ("failOnDataLoss", "no"),
        ("maxEntriesPerTrigger", "0"),
        ("from_ms", "5"),
    ],
)
def test_a_wrong_option_is_refused(option: str, value: str) -> None:
    with pytest.raises(ConfigError, match=option):
        stream("log", **{option: value})


def test_a_tiers_manifests_are_read_once_and_state_where_it_ends(tier_place: str) -> None:
    objects = Objects(tier_place)
    tier = LogTier(objects, "usage/b1/1")

    def put(first: int) -> None:
        data = b"nobody opens this"
        facts = TieredSegment(first, first + 9, 0, 1, len(data), checksum_of(data))
        tier.put(facts, data, b"")

    put(0)
    logs = stream(tier_place, startingOffsets="latest")
    (log,) = start = logs.initialOffset()
    put(10)
    if tier_place.startswith("s3"):
        objects.delete(tier.name_of(0, MANIFEST))
        objects.create(tier.name_of(0, MANIFEST), b"not a manifest")

    assert (start, newest(logs, start)) == ({log: 10}, {log: 20})
