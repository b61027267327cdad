"""A groups file read by a process of its own: the same snapshot, hash and faults, put together in slices.

Not covered: how long a loop is kept waiting (bench/policies.py measures that), that a small file is faster
read at once.
"""

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from rgd.config.groups import load_groups, policies_hash
from rgd.config.groups_apart import SMALL_BYTES_MAX, LoadedGroups, load_groups_apart, release
from rgd.core.policies.model import Attachments
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.errors import ConfigError
from tests.unit.config.groups_file import EVERYTHING, SNAPSHOT


@pytest.fixture(autouse=True)
def _thaw() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file to write."""
    return tmp_path / "groups.yaml"


Load = Callable[[Path], LoadedGroups]


@pytest.fixture(params=[SMALL_BYTES_MAX, 0], ids=["small", "large"])
def load(request: pytest.FixtureRequest) -> Load:
    """Reads a file, here or apart."""
    return partial(load_groups_apart, small_bytes_max=request.param)


def test_the_snapshot_and_the_hash_are_as_if_it_were_read_here(file: Path, load: Load) -> None:
    file.write_text(EVERYTHING)
    assert load(file) == LoadedGroups(SNAPSHOT, policies_hash(SNAPSHOT))


def test_every_fault_is_reported_as_if_it_were_read_here(file: Path, load: Load) -> None:
    file.write_text("groups:\n  gold: {publik: {}}\n  a b: {}\n")
    with pytest.raises(ConfigError) as here:
        load_groups(file)
    with pytest.raises(ConfigError) as apart:
        load(file)
    assert apart.value.faults == here.value.faults
    assert len(apart.value.faults) == 2


def test_a_file_that_is_not_there_is_a_fault(file: Path, load: Load) -> None:
    with pytest.raises(ConfigError, match="expected a readable file"):
        load(file)


def test_a_process_that_ends_before_it_has_sent_all_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "groups.yaml"
    path.write_text(EVERYTHING)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ConfigError, match="the process for it ended with 1"):
        load_groups_apart(path, small_bytes_max=0)


class _Name(str):
    """A text that can tell when it is gone."""

    __slots__ = ("__weakref__",)


def test_a_snapshot_that_was_released_is_freed_and_one_that_somebody_has_is_whole() -> None:
    kept = PolicySnapshot(attach=Attachments({"acme": "gold"}))
    group = _Name("gold")
    gone = weakref.ref(group)
    snapshots = [kept, PolicySnapshot(attach=Attachments({"acme": group}))]
    del group
    release(snapshots)
    assert snapshots == []
    assert kept.attach.tenants == {"acme": "gold"}
    assert gone() is None
