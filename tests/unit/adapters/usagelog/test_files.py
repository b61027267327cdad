"""Folder names never clash, segments are listed in order, and a log has one writer.

Not covered: the lock between processes (tests/e2e/test_failed_starts.py), and file systems without `flock`.
"""

import os
import shutil
from pathlib import Path

import pytest

from rgd.adapters.usagelog.files import FolderLock, log_folder
from rgd.ports.usagelog import LogLocked

NAMES = [
    "broker-1",
    "broker_1",
    "..",
    ".",
    ".lock",
    "%2Elock",
    "%2E",
    "a/b",
    "a%2Fb",
    "pulsar://host:6650",
    "größe",
    "x" * 512,
    "x" * 511 + "y",
    "é" * 512,
    "a+b",
]


def test_every_broker_has_a_folder_of_its_own_directly_in_the_root(tmp_path: Path) -> None:
    folders = [log_folder(tmp_path, name) for name in NAMES]
    assert len(set(folders)) == len(NAMES)
    for folder in folders:
        assert folder.parent == tmp_path
        assert not folder.name.startswith(".")
        folder.mkdir()
        assert folder.is_dir()


@pytest.mark.parametrize("gone", ["removed", "moved"])
def test_a_folder_that_is_gone_is_made_and_locked_again(tmp_path: Path, gone: str) -> None:
    lock, folder = FolderLock(tmp_path / "log"), tmp_path / "log"
    lock.acquire()
    if gone == "removed":
        shutil.rmtree(folder)
    else:
        folder.rename(tmp_path / "archive")
    lock.acquire()
    with pytest.raises(LogLocked):
        FolderLock(folder).acquire()


def test_a_second_writer_learns_who_has_the_log_and_what_to_do(tmp_path: Path) -> None:
    first, second = FolderLock(tmp_path), FolderLock(tmp_path)
    first.acquire()
    first.acquire()
    with pytest.raises(LogLocked, match=rf"process {os.getpid()}\).*broker\.name or log\.dir"):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()
