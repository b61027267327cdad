"""The names of the peers that the last run knew: whatever the file holds, the daemon starts."""

from pathlib import Path

import pytest

from rgd.app.known_peers import KnownPeers


def test_names_are_kept(tmp_path: Path) -> None:
    known = KnownPeers(tmp_path / "a" / "peers.json")
    assert known.load() == frozenset()
    known.store(("broker-1", "broker-2"))
    assert known.load() == {"broker-1", "broker-2"}


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[" * 100_000, b"[1, null]"])
def test_what_makes_no_sense_is_no_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "peers.json"
    path.write_bytes(data)
    assert KnownPeers(path).load() == frozenset()
