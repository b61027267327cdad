"""The embedded broker with real processes: started, shared, killed, taken over, ended.

Other daemons are other processes (`daemon.py` beside this file). Not covered here: what is said over
the broker (tests/contract/exchange), macOS (no parent-death signal: only the clean-up after an orphan
is tested, here on Linux), and a machine on which the wheel cannot be installed.
"""

import asyncio
import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

import psutil
import pytest

from rgd.adapters.exchange import embedded_folder
from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.exchange.embedded_folder import BrokerRecord, EmbeddedFolder
from rgd.adapters.exchange.embedded_process import BrokerProcess, find_binary, is_port_free
from rgd.adapters.exchange.pulsar import PulsarExchange, PulsarSettings
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.adapters.exchange.seal import SealSettings
from rgd.errors import ConfigError
from rgd.ports.exchange import ExchangeDown
from tests.support import components
from tests.support.exchanges import hears_itself, opened
from tests.support.policy_tables import until

pytestmark = pytest.mark.embedded

TIMEOUT_S = 60
SETTINGS = PulsarSettings(open_timeout_s=10, send_timeout_ms=10_000)
DAEMON = Path(__file__).with_name("daemon.py")

MakeBroker = Callable[[Path], EmbeddedBroker]


@pytest.fixture(autouse=True)
def _needs_the_binary() -> None:
    components.embedded_broker()


@pytest.fixture
async def broker() -> AsyncGenerator[MakeBroker]:
    """Makes this process's part in a folder's broker; stopped in the end."""
    made: list[EmbeddedBroker] = []

    def make(folder: Path) -> EmbeddedBroker:
        made.append(EmbeddedBroker(folder))
        return made[-1]

    yield make
    for each in made:
        await each.stop()


class Daemon:
    """Another process that ensures and supervises the broker of a folder."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, DAEMON, str(folder)], stdout=subprocess.PIPE, text=True
        )

    async def told(self) -> dict[str, object]:
        """What it prints once `ensure` has returned."""
        assert self._process.stdout is not None
        line = await asyncio.to_thread(self._process.stdout.readline)
        answer: dict[str, object] = json.loads(line)
        return answer

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ended(self) -> int:
        return await asyncio.to_thread(self._process.wait, TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


async def _serves(url: str) -> None:
    """Publish and hear something over the broker, now or as soon as it is back."""
    member = PulsarExchange(url, settings=SETTINGS)
    await opened(member.open)
    await hears_itself(member)
    await member.close()


async def test_it_listens_on_one_port_of_the_loopback_and_nowhere_else(
    broker: MakeBroker, tmp_path: Path
) -> None:
    mine = broker(tmp_path)
    url = await mine.ensure()
    await _serves(url)
    assert mine.pid is not None
    process = psutil.Process(mine.pid)
    assert process.name() == "pulsar-lite"
    listening = {c.laddr for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", int(url.rpartition(":")[2]))}
    # To ensure it twice changes nothing.
    assert (await mine.ensure(), mine.pid) == (url, process.pid)


async def test_a_stopped_broker_is_gone_and_its_folder_serves_again_on_the_same_port(
    broker: MakeBroker, tmp_path: Path
) -> None:
    first = broker(tmp_path)
    url = await first.ensure()
    table = PulsarPolicyStore(url, settings=SETTINGS)
    await table.open()
    await table.put("key", b"value")
    await table.close()
    pid = first.pid
    assert pid is not None
    await first.stop()
    await first.stop()
    assert not psutil.pid_exists(pid)
    assert await broker(tmp_path).ensure() == url
    table = PulsarPolicyStore(url, settings=SETTINGS)
    assert dict(await table.open()) == {"key": b"value"}
    await table.close()


def _runs_anew(broker: EmbeddedBroker, killed: int) -> bool:
    return broker.pid not in {None, killed}


async def test_it_is_restarted_where_it_was_when_it_dies(
    broker: MakeBroker, tmp_path: Path
) -> None:
    mine = broker(tmp_path)
    url = await mine.ensure()
    async with asyncio.TaskGroup() as group:
        group.create_task(mine.supervise())
        for _ in range(3):
            killed = mine.pid
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            await until(partial(_runs_anew, mine, killed))
            await _serves(url)
        await mine.stop()
    assert mine.url == url


async def test_daemons_that_start_together_share_one_broker(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        daemons = [stack.enter_context(Daemon(tmp_path)) for _ in range(4)]
        told = await asyncio.gather(*(daemon.told() for daemon in daemons))
        assert len({answer["url"] for answer in told}) == 1
        assert [answer["pid"] for answer in told].count(None) == 3


async def test_folders_of_their_own_have_brokers_of_their_own(
    broker: MakeBroker, tmp_path: Path
) -> None:
    brokers = [broker(tmp_path / str(number)) for number in range(4)]
    urls = await asyncio.gather(*(each.ensure() for each in brokers))
    assert len(set(urls)) == 4
    assert None not in [each.pid for each in brokers]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_another_daemon_takes_over_on_the_same_port_when_the_owner_goes(
    broker: MakeBroker, tmp_path: Path, how: signal.Signals
) -> None:
    mine = broker(tmp_path)
    with Daemon(tmp_path) as owner:
        answer = await owner.told()
        assert await mine.ensure() == answer["url"]
        assert mine.pid is None
        member = PulsarExchange(mine.url, settings=SETTINGS)
        table = PulsarPolicyStore(mine.url, settings=SETTINGS)
        await member.open()
        await table.open()
        await table.put("key", b"value")
        async with asyncio.TaskGroup() as group:
            group.create_task(mine.supervise())
            owner.send(how)
            assert await owner.ended() == (0 if how == signal.SIGTERM else -signal.SIGKILL)
            await until(lambda: mine.pid is not None)
            # Those who were there before come back by themselves, and nothing kept is lost.
            await hears_itself(member, b"back")
            late = PulsarPolicyStore(mine.url, settings=SETTINGS)
            assert dict(await late.open()) == {"key": b"value"}
            await mine.stop()
    for each in (member, table, late):
        await each.close()


def _counting_looks(each: EmbeddedBroker) -> list[float]:
    """A list that grows by one with each look at the broker's life."""
    looks: list[float] = []
    pause = each._pause

    async def counted(pause_s: float) -> None:
        looks.append(pause_s)
        await pause(pause_s)

    each._pause = counted  # type: ignore[method-assign]
    return looks


@pytest.mark.parametrize("is_killed", [True, False], ids=["broker killed", "broker alive"])
async def test_a_folder_that_is_removed_has_one_owner_again_and_one_broker(
    broker: MakeBroker, tmp_path: Path, *, is_killed: bool
) -> None:
    folder = tmp_path / "exchange"
    first, second = broker(folder), broker(folder)
    url = await first.ensure()
    assert await second.ensure() == url
    assert first.pid is not None
    async with asyncio.TaskGroup() as group:
        for each in (first, second):
            group.create_task(each.supervise())
        before = first.pid
        if is_killed:
            os.kill(before, signal.SIGKILL)
        # Out of its way first: a broker that lives writes to it.
        shutil.rmtree(folder.rename(tmp_path / "removed"))
        await until(
            lambda: (
                None in {first.pid, second.pid}
                and {first.pid, second.pid} not in ({before}, {None}, {before, None})
            )
        )
        await _serves(url)
        assert (folder / "owner.lock").exists()
        # Nobody takes the other's broker for an orphan: it is the same one many looks later.
        pids = {first.pid, second.pid}
        looks = _counting_looks(second)
        await until(lambda: len(looks) > 20)
        assert {first.pid, second.pid} == pids
        for each in (second, first):
            await each.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the parent-death signal")
async def test_it_does_not_outlive_a_daemon_that_is_killed(tmp_path: Path) -> None:
    with Daemon(tmp_path) as owner:
        answer = await owner.told()
        pid = int(str(answer["pid"]))
        assert psutil.Process(pid).name() == "pulsar-lite"
        owner.send(signal.SIGKILL)
        await owner.ended()
        await until(lambda: not psutil.pid_exists(pid))


async def test_an_orphan_of_an_earlier_daemon_is_ended_first(
    broker: MakeBroker, tmp_path: Path
) -> None:
    folder = EmbeddedFolder(tmp_path)
    port = next(filter(is_port_free, folder.ports()))
    orphan = BrokerProcess(folder, find_binary(), port)
    await orphan.wait_until_ready()
    folder.write_record(BrokerRecord(port, broker_pid=orphan.pid, is_ready=True))
    reaper = asyncio.create_task(until(orphan.has_ended))  # what init does with a true orphan
    url = await broker(tmp_path).ensure()
    await reaper
    assert url == f"pulsar://127.0.0.1:{port}"
    await _serves(url)


async def test_a_pid_that_another_program_has_now_is_left_alone(
    broker: MakeBroker, tmp_path: Path
) -> None:
    stranger = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=subprocess.PIPE
    )
    record = BrokerRecord(30_000, broker_pid=stranger.pid, is_ready=True)
    EmbeddedFolder(tmp_path).write_record(record)
    await broker(tmp_path).ensure()
    await stranger.communicate(b"\n")
    assert stranger.returncode == 0


async def test_a_stranger_on_the_port_of_last_time_costs_the_port_only(
    broker: MakeBroker, tmp_path: Path
) -> None:
    first = broker(tmp_path)
    url = await first.ensure()
    await first.stop()
    with socket.create_server(("127.0.0.1", int(url.rpartition(":")[2]))):
        second = broker(tmp_path)
        moved = await second.ensure()
        assert moved != url
        await _serves(moved)


async def test_a_folder_that_cannot_be_used_is_reported_with_the_brokers_own_words(
    broker: MakeBroker, tmp_path: Path
) -> None:
    (tmp_path / "broker.rocksdb").write_text("a file where a folder must be")
    told = r"ended with 1 on .*writable.*broker\.log says:\nError: .*RocksDB"
    with pytest.raises(ExchangeDown, match=told):
        await broker(tmp_path).ensure()
    (tmp_path / "broker.rocksdb").unlink()
    await _serves(await broker(tmp_path).ensure())


async def test_without_the_binary_the_message_says_what_to_install_or_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[embedded\].*exchange\.url"):
        await EmbeddedBroker(tmp_path, package="no_such_package").ensure()


async def test_its_secret_and_its_data_are_for_its_user_only(
    broker: MakeBroker, tmp_path: Path
) -> None:
    mine = broker(tmp_path / "exchange")
    await _serves(await mine.ensure())
    folder = EmbeddedFolder(tmp_path / "exchange")
    secret = folder.secret.read_bytes()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.secret.stat().st_mode) == 0o600
    data = folder.database.with_suffix(".rocksdb")
    assert not stat.S_IMODE(data.stat().st_mode) & 0o077
    await mine.stop()
    # Who takes over later knows the same secret: sealed policies stay readable.
    await broker(tmp_path / "exchange").ensure()
    assert folder.secret.read_bytes() == secret


async def test_a_folder_that_anybody_may_write_to_is_refused(
    broker: MakeBroker, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(ConfigError, match=r"exchange\.embedded_dir.*chmod o-w"):
        await broker(shared).ensure()
    # A folder below it is made by us, and closed.
    folder = shared / "exchange"
    first, second = broker(folder), broker(folder)
    await _serves(await first.ensure())
    # Where it is opened later, who joined goes on, and takes over once it is closed again.
    await second.ensure()
    async with asyncio.TaskGroup() as group:
        folder.chmod(0o777)
        looks = _counting_looks(second)
        group.create_task(second.supervise())
        await until(lambda: len(looks) > 2)
        folder.chmod(0o700)
        await first.stop()
        await until(lambda: second.pid is not None)
        await second.stop()


async def test_a_full_disk_delays_the_secret_and_keeps_no_lock(
    broker: MakeBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    mine, folder = broker(tmp_path), EmbeddedFolder(tmp_path)
    with monkeypatch.context() as disk:
        disk.setattr(embedded_folder, "replace_file", is_full)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                folder.try_lock()
    await mine.ensure()
    assert folder.secret.exists()
    monkeypatch.setattr(embedded_folder, "replace_file", is_full)
    await mine.stop()
    assert folder.try_lock()
    folder.unlock()


async def test_a_daemon_without_the_folders_secret_reports_what_is_missing(
    broker: MakeBroker, tmp_path: Path
) -> None:
    url = await broker(tmp_path).ensure()
    seal = SealSettings(tmp_path / "nothing.key", time.monotonic_ns)
    member = PulsarExchange(url, settings=replace(SETTINGS, seal=seal))
    with pytest.raises(ExchangeDown, match=r"nothing\.key"):
        await member.open()
    await member.close()
