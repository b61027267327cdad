"""`/v1/log`: what a broker gives to a consumer, page by page, and readers' positions.

Law: going from `next_index` to `next_index` gives every entry once, whatever lies on disk and what in the
tier; each answer is as /openapi.json describes it.
"""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.ports.log_door import CURSORS_MAX
from rgd.wire.frame import decode_entry, peek_broker_entry_metadata
from rgd.wire.parts import MAGIC_CRC32C
from tests.integration.http.door import Door, open_door
from tests.support.kept_logs import SetClock, keeper_of, uploader_of
from tests.unit.adapters.usagelog.logs import T0, payload_of, pendings, segments_in, write_log

COUNT = 300
SETTINGS = UsageLogSettings(segment_bytes=4096)
ENTRIES = "/v1/log/entries"
CURSORS = "/v1/log/cursors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_log(tmp_path / "log", pendings(COUNT), SETTINGS)
    return tmp_path / "log"


@asynccontextmanager
async def log_at(folder: Path, **more: object) -> AsyncIterator[Door]:
    keeper = keeper_of(folder, COUNT, clock=SetClock(), **more)  # type: ignore[arg-type]
    async with open_door(HttpSettings(port=0), log_door=keeper) as door:
        yield door


async def pages(door: Door, query: str) -> list[bytes]:
    """All entries from a position on, page by page."""
    found: list[bytes] = []
    for _ in range(COUNT):
        answer = (await door.call("GET", f"{ENTRIES}?{query}")).json
        found += [base64.b64decode(one["headers_and_payload"]) for one in answer["entries"]]
        if not answer["more"]:
            assert answer["next_index"] == COUNT
            return found
        query = f"limit=70&index={answer['next_index']}"
    raise AssertionError("the pages never end")


async def test_entries_come_as_a_broker_gives_them(folder: Path) -> None:
    async with log_at(folder) as door:
        found = await pages(door, "limit=7")
    assert [decode_entry(data).payload for data in found] == [payload_of(n) for n in range(COUNT)]
    for data in found:
        assert data.startswith(MAGIC_CRC32C)
        assert peek_broker_entry_metadata(data) is None


async def test_a_reader_chooses_whether_it_sees_the_brokers_part(folder: Path) -> None:
    """PIP-70: the daemon's switch is the most that is allowed."""
    query = f"{ENTRIES}?index=5&limit=1&expose="
    async with log_at(folder, exposes_metadata=True) as door:
        shown = (await door.call("GET", f"{query}true")).json["entries"][0]
        hidden = (await door.call("GET", f"{query}false")).json["entries"][0]
        malformed = await door.call("GET", f"{query}1")
    assert shown["broker_entry_metadata"] == {"broker_timestamp": T0 + 50, "index": 5}
    assert hidden["broker_entry_metadata"] is None
    assert malformed.status == 400
    async with log_at(folder, exposes_metadata=False) as door:
        refused = await door.call("GET", f"{query}true")
        assert (await door.call("GET", f"{query}false")).json["entries"] == [hidden]
    assert refused.status == 403
    assert "exposingBrokerEntryMetadataToClientEnabled" in refused.json["reason"]


async def test_it_begins_at_an_index_a_time_or_a_cursor(folder: Path) -> None:
    async with log_at(folder) as door:
        assert (await door.call("PUT", f"{CURSORS}/reader", {"index": 250})).status == 200
        for query in ("index=250", f"time={T0 + 2500}", f"time={T0 + 2491}", "cursor=reader"):
            found = await pages(door, query)
            assert [decode_entry(data).payload for data in found] == [
                payload_of(number) for number in range(250, COUNT)
            ]
        for query in (f"index={COUNT}", f"time={T0 + 10 * COUNT}"):
            answer = (await door.call("GET", f"{ENTRIES}?{query}")).json
            assert (answer["entries"], answer["next_index"], answer["more"]) == ([], COUNT, False)


async def test_entries_in_the_tier_and_on_disk_are_one_log(folder: Path, tier_place: str) -> None:
    uploader = uploader_of(folder, tier_place, SetClock().now)
    uploader.cycle()
    assert len(segments_in(folder)) == 1
    async with log_at(folder, uploader=uploader) as door:
        found = await pages(door, "limit=150")
    assert [decode_entry(data).payload for data in found] == [payload_of(n) for n in range(COUNT)]


async def test_what_was_deleted_unread_is_said(folder: Path) -> None:
    first = int(segments_in(folder)[1].stem)
    segments_in(folder)[0].unlink()
    async with log_at(folder) as door:
        answer = (await door.call("GET", f"{ENTRIES}?index=1&limit=1")).json
        assert (answer["passed"], answer["next_index"]) == (first - 1, first + 1)
        cursor = (await door.call("PUT", f"{CURSORS}/reader", {"index": 3})).json
        assert (cursor["passed"], cursor["behind"]) == (first - 3, COUNT - 3)


async def test_damage_is_stepped_over_and_counted(folder: Path) -> None:
    path = segments_in(folder)[0]
    data = bytearray(path.read_bytes())
    data[24] ^= 0xFF  # in the first entry's checksum
    path.write_bytes(data)
    async with log_at(folder) as door:
        answer = (await door.call("GET", f"{ENTRIES}?limit=3")).json
    assert answer["damaged"] == 1
    assert [decode_entry(base64.b64decode(one["headers_and_payload"])).payload for one in answer["entries"]] == [
        payload_of(number) for number in (1, 2, 3)
    ]  # fmt: skip
    assert answer["next_index"] == 4


async def test_positions_are_kept_over_a_restart_and_may_go_back(folder: Path) -> None:
    async with log_at(folder) as door:
        for name, index in (("b", 20), ("a", 30), ("b", 10)):
            await door.call("PUT", f"{CURSORS}/{name}", {"index": index})
    async with log_at(folder) as door:
        listed = (await door.call("GET", CURSORS)).json
        assert [(one["name"], one["index"], one["holds"]) for one in listed] == [
            ("a", 30, True),
            ("b", 10, True),
        ]
        assert (await door.call("DELETE", f"{CURSORS}/a")).status == 204
        assert (await door.call("DELETE", f"{CURSORS}/a")).status == 404
        assert (await door.call("GET", f"{ENTRIES}?cursor=a")).status == 404


async def test_positions_that_cannot_be_kept_are_refused(folder: Path) -> None:
    async with log_at(folder) as door:
        for name, index, words in (
            ("reader", COUNT + 1, f"at most {COUNT}"),
            ("tier", 1, "the uploader's own"),
        ):
            answer = await door.call("PUT", f"{CURSORS}/{name}", {"index": index})
            assert answer.status == 409
            assert words in answer.reason
        for number in range(CURSORS_MAX):
            await door.call("PUT", f"{CURSORS}/reader-{number}", {"index": number})
        assert (await door.call("PUT", f"{CURSORS}/one-more", {"index": 1})).status == 409
        assert (await door.call("PUT", f"{CURSORS}/reader-1", {"index": 2})).status == 200
        assert (await door.call("PUT", f"{CURSORS}/reader-1", {"index": -1})).status == 400


@pytest.mark.parametrize(
    "query",
    ["index=-1", "index=x", "limit=0", "limit=1001", "from=1", "index=1&index=2", "index=1&time=2",
     "cursor=a%2Fb", f"time={1 << 63}"],
)  # fmt: skip
async def test_malformed_questions_are_400(folder: Path, query: str) -> None:
    async with log_at(folder) as door:
        answer = await door.call("GET", f"{ENTRIES}?{query}")
        assert answer.status == 400
        assert answer.reason


async def test_a_tier_that_is_down_is_503(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    async with log_at(tmp_path / "nowhere") as door:
        assert (await door.call("GET", ENTRIES)).status == 503
