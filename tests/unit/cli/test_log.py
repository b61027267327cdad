"""`rgd log cat`: the contract of --json, lines for people, damage that does not hide the rest.

Written with rgd's own wire code; that Pulsar writes the same bytes is the wire's tests' business,
reading files is the usage log adapter's.
"""

import json
import re
from pathlib import Path

import pytest

from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.policies.model import SharePolicyName
from rgd.core.units import Kind, Pair
from rgd.wire.frame import BrokerEntryMetadata, Entry, encode_entry
from rgd.wire.log_records import LogEncoder
from tests.support.columns import shares_of
from tests.unit.cli.conftest import Rgd

NOON_MS = 1_795_262_400_000

RECORD = RoundRecord(
    sender=Sender("east", 5),
    sequence=9,
    period_ns=1_000_000_000,
    rows=shares_of(
        ShareRow(
            UsageRow("gold", Kind.PUBLISH, 3, Pair(10_000, 0), Pair(20_500, 0)),
            share=(15_000, None),
            quota=(100_000, None),
            policy=SharePolicyName.MAX_MIN,
            refused=Pair(10, 0),
            sent=False,
            admitted_total=Pair(7, 0),
            wanted_total=Pair(8, 0),
        ),
    ),
    peers=(("west", 4),),
    peer_incarnations=(1,),
    weight=1500,
)


def entry(index: int, payload: bytes, **changes: object) -> Entry:
    values: dict[str, object] = {
        "producer_name": "rgd-east",
        "sequence_id": index,
        "publish_time": NOON_MS + index,
        "payload": payload,
        "broker": BrokerEntryMetadata(NOON_MS + index, index),
    }
    return Entry(**(values | changes))  # type: ignore[arg-type]


def segment(folder: Path, entries: list[Entry], first_index: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{first_index:020}.log"
    encoded = [encode_entry(one) for one in entries]
    path.write_bytes(b"".join(len(data).to_bytes(4, "big") + data for data in encoded))
    return path


def report(index: int, record: RoundRecord = RECORD) -> Entry:
    payload = LogEncoder().encode(record)
    return entry(index, payload.data, properties=payload.properties, unknown=payload.metadata)


def lines_of(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_damage_goes_to_standard_error_and_the_rest_is_printed(rgd: Rgd, tmp_path: Path) -> None:
    path = segment(tmp_path, [report(0), report(1), report(2)])
    content = bytearray(path.read_bytes())
    size = len(content) // 3
    content[size + size // 2] ^= 0xFF
    path.write_bytes(content)
    outcome = rgd("log", "cat", "--json", tmp_path)
    assert outcome.code == 1
    assert [told["index"] for told in lines_of(outcome.out)] == [0, 2]
    assert re.search(rf"^rgd: {re.escape(str(path))}: .*offset {size}\b", outcome.err, re.MULTILINE)


def test_a_report_of_a_later_version_is_reported_and_shown_as_bytes(
    rgd: Rgd, tmp_path: Path
) -> None:
    path = segment(tmp_path, [entry(0, b"\x01", properties=(("rgd", "99"),)), report(1)])
    outcome = rgd("log", "cat", "--json", path)
    assert outcome.code == 1
    first, second = lines_of(outcome.out)
    assert (first["report"], first["payload_hex"]) == (None, "01")
    assert second["report"] is not None
    assert f"{path}: entry at offset 0: record: version '99' is not known" in outcome.err


@pytest.mark.parametrize("form", ["--json", "--raw"])
def test_a_log_without_entries_is_no_silence(rgd: Rgd, tmp_path: Path, form: str) -> None:
    outcome = rgd("log", "cat", form, tmp_path)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", f"rgd: {tmp_path}: no entries\n")


def test_for_people_a_round_is_a_line_and_one_for_each_thing_that_happened(
    rgd: Rgd, tmp_path: Path
) -> None:
    segment(tmp_path, [report(0), entry(1, b"xyz", broker=None)])
    outcome = rgd("log", "cat", tmp_path)
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "0 2026-11-21T12:00:00.000Z rgd-east#0 round 9 of east, 1000 ms, peers west#4",
        "    gold publish messages: admitted 10.0/s, wanted 20.5/s, refused 10; "
        "share 15.0/s of 100.0/s (max-min, not sent)",
        "- 2026-11-21T12:00:00.001Z rgd-east#1 3 bytes that are no report",
    ]


def test_a_time_beyond_the_calendar_is_shown_as_it_is(rgd: Rgd, tmp_path: Path) -> None:
    path = segment(tmp_path, [entry(0, b"", broker=None, publish_time=1 << 62)])
    outcome = rgd("log", "cat", path)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"{1 << 62} ms" in outcome.out
