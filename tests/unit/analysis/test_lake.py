"""Segments become Parquet: each row once, from wherever and however often they are converted.

Not covered: Spark's part, and buckets (tests/integration/spark/test_convert.py).
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from rgd.analysis import lake
from rgd.analysis.asked import ALWAYS, EVERYTHING, Asked, TimeRange
from rgd.analysis.discovery import Segment, find_segments, segments_within
from rgd.analysis.errors import BadLake, NoLog
from rgd.analysis.headers import Sampling
from rgd.analysis.lake import claim, convert_segment
from rgd.analysis.lake_names import MARKER, key_and_size
from rgd.analysis.lake_reader import headers_of, pieces_of
from rgd.analysis.lake_schema import LAKE, columns_of, described
from rgd.analysis.log_facts import Stats, gather
from rgd.analysis.schema import PIECES, arrow
from rgd.core.exchange.messages import PoliciesInForce, Sender
from rgd.core.policies.model import Group
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind, Pair
from rgd.errors import ConfigError
from rgd.storage.errors import ObjectMissing, TierDown
from rgd.storage.objects import Objects
from rgd.wire.log_records import LogEncoder
from tests.support.log_maker import LogMaker, Usage, log_of

#: Midnight in UTC.
MIDNIGHT_MS = 1_795_305_600_000
GOLD = Usage("gold", admitted=70, wanted=90, quota=100, share=70.5, admitted_bytes=7000)
TIN = Usage("tin", admitted=1, kind=Kind.DISPATCH)


@pytest.fixture
def out(tmp_path: Path) -> str:
    place = str(tmp_path / "lake")
    claim(place)
    return place


def rows_of(out: str, table: str) -> list[dict[str, Any]]:
    """A table of the lake, without its partitions."""
    found = ds.dataset(Path(out) / table, schema=arrow(columns_of(table))).to_table()
    return list(found.to_pylist())


def log(folder: Path, rounds: int = 100) -> LogMaker:
    """Rounds around midnight."""
    maker = LogMaker(folder, "b1", start_ms=MIDNIGHT_MS - 50_000)
    maker.rounds(rounds, GOLD, TIN)
    return maker


def convert(file: Path, out: str) -> int | None:
    return convert_segment(Segment.of(file), out)


def read_of(out: str, within: TimeRange) -> list[Any]:
    """What a report about a time range reads of a lake."""
    files = segments_within(find_segments([out], lakes=True), within)
    return [one for file in files for one in pieces_of(file, 60_000, Asked(within))]


def said_of(out: str, within: TimeRange = ALWAYS) -> list[Stats]:
    """What the segments of a lake say of themselves to a report about a time range."""
    return [one for one in read_of(out, within) if isinstance(one, Stats)]


def test_a_loss_before_the_first_record_of_a_day_is_counted(tmp_path: Path, out: str) -> None:
    maker = log(tmp_path / "b1", 48)
    maker.lose(3, GOLD)
    maker.rounds(5, GOLD)
    convert(maker.close(), out)
    (said,) = said_of(out)
    assert [run.missing for run in said.runs] == [3]


@pytest.mark.parametrize("lost", [None, 3])
def test_a_log_that_was_converted_from_several_places_is_one(
    tmp_path: Path, out: str, lost: int | None
) -> None:
    # The broker began again with an empty disk, so that indexes are those of an older log.
    for hour, log in enumerate(("old", "new")):
        maker = LogMaker(tmp_path / log, "b1", start_ms=MIDNIGHT_MS + hour * 3_600_000)
        maker.incarnation = hour
        for number in range(5):
            # On every other day from the tier.
            maker.folder = tmp_path / f"{log}{number % 2}"
            maker.folder.mkdir(exist_ok=True)
            maker.rounds(10, GOLD)
            segment = maker.roll()
            if (log, number) != ("new", lost):
                convert(segment, out)
    facts = gather(said_of(out), round_ms=1000, window_ms=60_000)
    assert facts.missing == (10 if lost else 0)


def test_a_segment_of_several_days_is_found_by_each_of_them(tmp_path: Path, out: str) -> None:
    day_ms = 86_400_000
    file = log_of(tmp_path, "b1", (15, GOLD), start_ms=MIDNIGHT_MS, period_ms=day_ms // 4)
    convert(file, out)
    for day in range(4):
        within = TimeRange(MIDNIGHT_MS + day * day_ms, MIDNIGHT_MS + (day + 1) * day_ms)
        (said,) = said_of(out, within)
        assert said.contents.records == 15


def test_a_segment_that_cannot_be_read_is_named_until_it_can(tmp_path: Path, out: str) -> None:
    file = log(tmp_path / "b1").close()
    whole = file.read_bytes()
    file.write_bytes(b"\xff" * len(whole))
    assert (convert(file, out), convert(file, out)) == (0, None)
    for within in (ALWAYS, TimeRange(MIDNIGHT_MS, MIDNIGHT_MS + 1)):
        (said,) = said_of(out, within)
        assert (said.contents.segment, said.contents.damaged) == (str(file), 1)
    file.write_bytes(whole)
    assert convert(file, out) == 200
    (said,) = said_of(out)
    assert (said.contents.records, said.contents.damaged) == (100, 0)
    assert len(rows_of(out, "segments")) == 1


@pytest.mark.parametrize(("is_torn", "size"), [(True, 100), (False, 100), (False, 40_000)])
@pytest.mark.parametrize(
    ("cut_off", "table"),
    [("", ""), ("replace", "segments"), ("delete", "minutes"), ("delete", "segments")],
)
def test_what_was_torn_or_damaged_is_replaced_though_a_run_is_cut_off_and_the_file_has_not_grown(
    tmp_path: Path,
    out: str,
    monkeypatch: pytest.MonkeyPatch,
    cut_off: str,
    table: str,
    size: int,
    *,
    is_torn: bool,
) -> None:
    maker = log(tmp_path / "b1", 0)
    for number in range(2):
        maker.append(b"another's" + bytes(size + number))
    maker.rounds(100, GOLD, TIN)
    at = maker.offset_of(52)
    file = maker.close()
    whole = file.read_bytes()
    # The daemon cuts a torn entry and goes on behind it; a copy whose head is damaged is replaced by a good one.
    torn = whole[:at] + (len(whole) - at).to_bytes(4, "big") + bytes(len(whole) - at - 4)
    file.write_bytes(torn if is_torn else bytes(64) + whole[64:])
    assert convert(file, out) == (100 if is_torn else 200)
    file = file.rename(tmp_path / file.name)
    assert convert(file, out) is None
    file.write_bytes(whole)
    if cut_off:
        done: Callable[..., None] = getattr(Objects, cut_off)

        def fail(self: Objects, name: str, *data: bytes) -> None:
            if name.startswith(table):
                raise TierDown("cut off")
            done(self, name, *data)

        with monkeypatch.context() as patched:
            patched.setattr(Objects, cut_off, fail)
            with pytest.raises(TierDown):
                convert(file, out)
    assert convert(file, out) == (None if cut_off == "delete" else 200)
    assert len(rows_of(out, "usage")) == 200
    assert len(set(filter(None, map(key_and_size, Objects(out).names(""))))) == 1


def test_of_two_runs_at_once_both_begin_a_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "new")

    def overtaken(self: Objects, *_: object) -> bytes:
        monkeypatch.undo()
        claim(place)
        raise ObjectMissing("it was not there yet")

    monkeypatch.setattr(Objects, "read_range", overtaken)
    claim(place)
    assert Objects(place).read(MARKER)


def test_a_range_may_end_behind_all_time(tmp_path: Path, out: str) -> None:
    convert(log(tmp_path / "b1").close(), out)
    assert len(said_of(out, TimeRange(1, 10**19))) == 1


@pytest.mark.parametrize("table", ["rounds", "segments"])
def test_of_two_conversions_at_once_the_one_of_more_bytes_stays(
    tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    file = log(tmp_path / "b1").close()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    half = Segment.of(file)
    put: Callable[[Objects, str, bytes], None] = Objects.replace

    def overtaken(self: Objects, name: str, data: bytes) -> None:
        if name.startswith(table):
            monkeypatch.undo()
            file.write_bytes(whole)
            assert convert(file, out) == 200
        put(self, name, data)

    monkeypatch.setattr(Objects, "replace", overtaken)
    convert_segment(half, out)

    assert len(rows_of(out, "usage")) == 200
    assert convert(file, out) is None


@pytest.mark.parametrize("size", [0, 3, 40, 64])
def test_a_segment_without_a_whole_entry_is_left_for_later(
    tmp_path: Path, out: str, size: int
) -> None:
    file = log(tmp_path / "b1").close()
    whole = file.read_bytes()
    file.write_bytes(whole[:size])
    assert convert(file, out) is None
    file.write_bytes(whole)
    assert convert(file, out) == 200
    assert len(rows_of(out, "segments")) == 1


def test_of_large_lakes_only_sampled_clocks_are_read(tmp_path: Path, out: str) -> None:
    convert(log(tmp_path / "b1", 200).close(), out)
    files = [one for one in find_segments([out], lakes=True) if "rounds" in one.path]
    found = [
        row
        for file in files
        for batch in headers_of(file, Sampling(64))
        for row in batch.to_pylist()
    ]
    assert {row["sequence"] for row in found} == {n for n in range(1, 201) if n % 64 < 32}


@pytest.mark.parametrize("left", [0, 100])
def test_a_damaged_file_is_named_with_what_to_delete(tmp_path: Path, out: str, left: int) -> None:
    convert(log(tmp_path / "b1").close(), out)
    (file, *_) = (Path(out) / "minutes").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:left])
    segments = find_segments([out], lakes=True)
    damaged = next(one for one in segments if one.name == str(file))
    remedy = f"{file.name} is not .* delete segments/key={file.name[:32]} "
    with pytest.raises(BadLake, match=remedy):
        list(pieces_of(damaged, 60_000, EVERYTHING))
    pq.write_table(pa.table({key: [[{"of": "others"}]] for key in PIECES}), file)
    with pytest.raises(BadLake, match=remedy):
        list(pieces_of(Segment(damaged.path, out, file.stat().st_size), 60_000, EVERYTHING))


def test_a_day_that_only_the_minutes_lack_is_refused(tmp_path: Path, out: str) -> None:
    maker = log(tmp_path / "b1")
    # Of this day there are rounds, but no usage.
    maker.now_ms += 86_400_000
    maker.round()
    convert(maker.close(), out)
    said_of(out)
    _, second, _ = sorted((Path(out) / "minutes").iterdir())
    shutil.rmtree(second)
    assert said_of(out, TimeRange(MIDNIGHT_MS + 86_400_001))
    with pytest.raises(
        BadLake, match=f"/minutes/{second.name}/.* is gone; .*rounds/{second.name} "
    ):
        said_of(out)
    shutil.rmtree(Path(out) / "rounds" / second.name)
    said_of(out)


def test_a_lake_without_a_segment_is_refused_with_the_remedy(out: str) -> None:
    with pytest.raises(NoLog, match=f"{out} is a lake without any .*rgd log convert .* {out}` "):
        find_segments([out], lakes=True)


def test_a_large_segment_is_in_several_files(
    tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake, "CHUNK_ROWS_MAX", 10)
    monkeypatch.setattr(lake, "PART_ROWS_MAX", 20)
    file = log(tmp_path / "b1", 40).close()
    convert(file, out)
    assert len(list(Path(out, "usage").rglob("*.parquet"))) == 4
    assert len(rows_of(out, "usage")) == 80


def test_refusals_by_level_and_policies_have_tables_of_their_own(tmp_path: Path, out: str) -> None:
    maker = log(tmp_path / "b1", 0)
    encoder = LogEncoder()
    snapshot = PolicySnapshot({"gold": Group("gold")})
    (item,) = encoder.items_of(PoliciesInForce(Sender("b1", 1), snapshot, 7))
    payload = encoder.encode(item)
    maker.append(payload.data, payload.properties, payload.metadata)
    maker.round(replace(GOLD, refused_by=(("broker", Pair(3, 4)), ("topic", Pair(5, 0)))))
    convert(maker.close(), out)

    refused = [(row["level"], row["messages"], row["bytes"]) for row in rows_of(out, "refused_by")]
    assert sorted(refused) == [("broker", 3, 4), ("topic", 5, 0)]
    (policy,) = rows_of(out, "policies")
    assert (policy["key"], policy["policies_hash"], policy["is_change"]) == (
        "group:gold",
        f"{7:016x}",
        False,
    )


def test_refusals_by_level_are_those_of_the_minutes_in_a_range(tmp_path: Path, out: str) -> None:
    maker = LogMaker(tmp_path / "b1", "b1", start_ms=MIDNIGHT_MS)
    maker.rounds(180, replace(GOLD, refused_by=(("broker", Pair(1)),)), TIN)
    convert(maker.close(), out)
    for minute in range(3):
        begin_ms = MIDNIGHT_MS + 60_000 * minute
        read = read_of(out, TimeRange(begin_ms, begin_ms + 60_000))
        pieces = pa.Table.from_batches(one for one in read if not isinstance(one, Stats))
        assert sum(pieces["refused_by"].combine_chunks().flatten().to_pylist()) == 60


def test_damage_is_counted_and_the_rest_converted(tmp_path: Path, out: str) -> None:
    maker = log(tmp_path / "b1")
    at = maker.offset_of(50)
    file = maker.close()
    data = bytearray(file.read_bytes())
    data[at + 40] ^= 1
    file.write_bytes(bytes(data))

    assert convert(file, out) == 198

    (quality,) = rows_of(out, "segments")
    assert (quality["damaged"], quality["records"], quality["lost_entries"]) == (1, 99, 1)
    assert quality["damages"][0].startswith(f"{at}: ")


@pytest.mark.parametrize("marker", ['{"version": 9}', None])
def test_what_is_no_lake_of_this_version_is_refused(tmp_path: Path, marker: str | None) -> None:
    name = "something" if marker is None else MARKER
    (tmp_path / name).write_text(marker or "else", encoding="utf-8")
    with pytest.raises(ConfigError, match="name an empty folder"):
        claim(str(tmp_path))
    with pytest.raises(NoLog, match="another version" if marker else "holds no segment"):
        find_segments([str(tmp_path)], lakes=True)


def test_a_lake_is_claimed_again_and_a_place_that_is_none_refused(out: str) -> None:
    claim(out)
    with pytest.raises(ConfigError, match="expected a folder"):
        claim("ftp://somewhere")


def test_the_page_documents_every_column_and_is_current() -> None:
    text = described()
    assert Path("docs/lake.md").read_text(encoding="utf-8").endswith(f"\n\n{text}")
    for table in LAKE:
        assert all(f"| `{name}` | {kind} | " in text for name, kind in columns_of(table).items())
