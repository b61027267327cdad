"""The file with what was last known of the policies table: whole or not at all, whatever happened to it.

Not covered: when it is written (tests/unit/app/test_policies_kept.py).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.policies.kept import PoliciesFile
from rgd.ports.policies import NotKept

RECORDS = [("group:gold", b'{"version":1}'), ("group:gr\u00f6\u00dfe\n", b"1\t2")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log" / "table-policies.jsonl"


def kept(path: Path, table: str = "one") -> PoliciesFile:
    return PoliciesFile(path, table)


@given(
    records=st.lists(st.tuples(st.text(), st.binary().map(lambda value: value.replace(b"\n", b""))))
)
def test_any_keys_and_lines_come_back(
    records: list[tuple[str, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    kept(path).store(records)
    assert kept(path).load() == records


def test_policies_of_another_table_are_not_used_and_that_is_reported(path: Path) -> None:
    kept(path, "one").store(RECORDS)
    other = kept(path, "other")
    assert other.load() is None
    assert "of another" in (other.trouble or "")
    # They may be the last copy of that table.
    path.with_name(f"{path.name}.damaged-0").rename(path)
    assert kept(path, "one").load() == RECORDS


@given(data=st.data())
def test_a_damaged_file_is_reported_and_not_used(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.jsonl"
    kept(path).store(RECORDS)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[cut] ^= data.draw(st.integers(1, 255))
    path.write_bytes(data.draw(st.sampled_from([whole[:cut], bytes(flipped), whole + b"x"])))
    damaged = kept(path)
    assert damaged.load() is None
    assert damaged.trouble is not None


def test_a_disk_that_is_full_leaves_what_was_stored_before(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(path).store(RECORDS)

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotKept, match="No space left on device"):
        kept(path).store([])
    assert kept(path).load() == RECORDS
    assert list(path.parent.iterdir()) == [path]


def test_a_crash_while_storing_leaves_what_was_stored_before(path: Path) -> None:
    def torn() -> Iterator[tuple[str, bytes]]:
        yield RECORDS[0]
        raise KeyboardInterrupt

    kept(path).store(RECORDS)
    with pytest.raises(KeyboardInterrupt):
        kept(path).store(torn())
    assert kept(path).load() == RECORDS
