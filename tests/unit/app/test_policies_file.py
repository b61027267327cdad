"""A groups file that is the truth, while it changes, breaks, vanishes and comes back.

Not covered here: what a groups file may say (rgd.config), and several daemons with different files
(test_health.py, tests/simulation/test_policies.py).
"""

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rgd.app.policies import file as file_module
from rgd.app.policies.file import FilePolicies, GroupsFile, seed_of
from rgd.config.faults import FAULTS_MAX
from rgd.config.groups import parse_groups
from rgd.config.kept_file import KeptFile
from rgd.config.plain_files import replace_file
from rgd.core.errors import PoliciesReadOnly
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.errors import ConfigError
from tests.support.policy_tables import GOLD, one_more, until
from tests.support.there import there

GOOD = "groups: {gold: {publish: {messages: 1}}}\n"
BETTER = "groups: {gold: {publish: {messages: 2}}}\n"
BAD = "groups: {gold: {publish: {messages: 3, bites: 1}}}\n"


def file_of(path: Path, *, resumes: bool = False) -> GroupsFile:
    return GroupsFile(path, KeptFile(path.with_name("kept"), str(path), 1000), resumes=resumes)


class Follower:
    """What a file source told."""

    def __init__(self, path: Path, *, resumes: bool = False) -> None:
        self.policies = FilePolicies(file_of(path, resumes=resumes))
        self.told: list[tuple[int, int]] = []

    def on_snapshot(self, snapshot: PolicySnapshot, policies_hash: int) -> None:
        rate = snapshot.groups["gold"].quota.publish.messages or 0
        self.told.append((rate // 1000, policies_hash))

    @property
    def rates(self) -> list[int]:
        return [rate for rate, _ in self.told]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(file_module, "FILE_POLL_S", 0.001)
    path = tmp_path / "groups.yaml"
    path.write_text(GOOD)
    return path


@pytest.fixture
async def follower(path: Path) -> AsyncIterator[Follower]:
    follower = Follower(path)
    task = asyncio.create_task(follower.policies.follow(follower.on_snapshot))
    await until(lambda: bool(follower.told))
    yield follower
    task.cancel()


async def test_a_bad_file_is_refused_at_the_start_but_not_by_a_plane_that_takes_over(
    path: Path, follower: Follower
) -> None:
    replace_file(path, BETTER.encode())
    kept = path.with_name("kept")
    await until(lambda: follower.rates == [1, 2] and kept.exists())
    await until(lambda: BETTER.encode() in kept.read_bytes())
    replace_file(path, BAD.encode())
    with pytest.raises(ConfigError, match="bites"):
        Follower(path)
    seed = there(seed_of(file_of(path, resumes=True)))
    assert seed.groups["gold"].quota.publish.messages == 2000
    following = Follower(path, resumes=True)
    assert "last good ones" in (following.policies.trouble or "")
    task = asyncio.create_task(following.policies.follow(following.on_snapshot))
    await until(lambda: following.rates == [2])
    replace_file(path, GOOD.encode())
    await until(lambda: following.rates == [2, 1])
    assert following.policies.trouble is None
    task.cancel()


async def test_nothing_is_changed_but_in_the_file(path: Path, follower: Follower) -> None:
    with pytest.raises(PoliciesReadOnly, match=str(path)):
        await follower.policies.change(GOLD, one_more)
    assert follower.rates == [1]


async def test_a_file_that_cannot_be_opened_is_reported_once_and_read_as_soon_as_it_can(
    path: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[object] = []

    def too_many(*args: object) -> bytes:
        tries.append(args)
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr("rgd.config.document.read_plain_file", too_many)
        replace_file(path, BETTER.encode())
        await until(lambda: len(tries) > 2)
        assert "Too many open files" in (follower.policies.trouble or "")
    assert [log["log_level"] for log in logs] == ["error"]
    assert follower.rates == [1]
    await until(lambda: follower.rates == [1, 2])
    assert follower.policies.trouble is None


async def test_a_file_that_vanished_and_comes_back_as_it_was_is_no_trouble_any_more(
    path: Path, follower: Follower
) -> None:
    aside = path.with_suffix(".aside")
    await asyncio.to_thread(path.rename, aside)
    await until(lambda: follower.policies.trouble is not None)
    await asyncio.to_thread(aside.rename, path)
    await until(lambda: follower.policies.trouble is None)


@pytest.mark.parametrize("where", ["while it is read", "when it is told"])
async def test_an_internal_error_loses_no_change_of_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    faults = iter([ZeroDivisionError("injected")])

    def load(content: bytes, name: str) -> PolicySnapshot:
        if where == "while it is read":
            for fault in faults:
                raise fault
        return parse_groups(content, name)

    def on_snapshot(snapshot: PolicySnapshot, policies_hash: int) -> None:
        if where == "when it is told" and source.told:
            for fault in faults:
                raise fault
        source.on_snapshot(snapshot, policies_hash)

    source = Follower(path)
    monkeypatch.setattr(file_module, "parse_groups", load)
    replace_file(path, BETTER.encode())
    with pytest.raises(ZeroDivisionError):
        await source.policies.follow(on_snapshot)
    assert source.rates == [1]
    assert "internal error" in (source.policies.trouble or "")
    # As the daemon does after a task raised.
    task = asyncio.create_task(source.policies.follow(on_snapshot))
    await until(lambda: source.rates == [1, 1, 2])
    assert source.policies.trouble is None
    task.cancel()


async def test_the_number_of_faults_is_true_however_many_are_listed(
    path: Path, follower: Follower
) -> None:
    count = FAULTS_MAX + 500
    wrong = "groups:\n" + "".join(f"  g{number}: 1\n" for number in range(count))
    replace_file(path, wrong.encode())
    await until(lambda: f", and {count - 1} more" in (follower.policies.trouble or ""))
