"""The names of the peers that the last run knew: whatever the file holds, the daemon starts."""

import threading
from pathlib import Path

import pytest

from rgd.app.known_peers import KnownPeers
from rgd.config.kept_file import KeptFile
from tests.support.policy_tables import TIMEOUT_S, until


async def test_the_newest_names_are_kept_and_a_slow_disk_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, may_write, contents = KeptFile.store, threading.Event(), list[bytes]()

    def slow(file: KeptFile, content: bytes) -> None:
        contents.append(content)
        assert may_write.wait(TIMEOUT_S)
        store(file, content)

    monkeypatch.setattr(KeptFile, "store", slow)
    known = KnownPeers(tmp_path / "a" / "peers.json")
    assert known.load() == frozenset()
    known.store(("broker-0",))
    await until(lambda: len(contents) == 1)
    known.store(("broker-1",))
    known.store(("broker-1", "broker-2"))
    may_write.set()
    await until(lambda: known.load() == {"broker-1", "broker-2"})
    assert len(contents) == 2


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[" * 100_000, b"[1, null]"])
def test_what_makes_no_sense_is_no_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "peers.json"
    path.write_bytes(data)
    assert KnownPeers(path).load() == frozenset()
