"""Internal errors are logged once for each place, counted, and end the daemon only where they are too many.

A whole daemon on a bus in memory goes on answering while its tasks raise. Not covered: a core
that raises in a process of its own (tests/unit/app/planes).
"""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from rgd.app.containment import INTERNAL_ERRORS_MAX, SITES_MAX, InternalErrors
from rgd.app.process import close_within
from rgd.app.telemetry import Telemetry
from rgd.core.buckets.decision import Decision, Request
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.messages import Loggable, PoliciesInForce
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_S, Nanos
from rgd.errors import InternalError
from rgd.ports.metrics import Sample
from tests.support.running_daemon import RunningDaemon, running_daemon

GOLD = Request(group="gold")
WAIT_S = 60


def boom(*_args: Any, **_kwargs: Any) -> Any:
    raise OverflowError("a number too large")


class Ledger:
    """Internal errors on a clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ends: list[str] = []
        self.errors = InternalErrors(lambda: Nanos(round(self.now_s * NS_PER_S)), self.ends.append)

    def note(self, where: str = "round", *, may_end: bool = True) -> None:
        """Meet one, always at the same place."""
        try:
            boom()
        except OverflowError as error:
            self.errors.note(where, error, about="x" * 10_000, may_end=may_end)

    def trouble(self) -> str:
        """What is degraded, or nothing."""
        return self.errors.trouble or ""


def test_a_place_is_logged_once_with_its_traceback_and_counted_each_time() -> None:
    ledger = Ledger()
    with capture_logs() as logs:
        for _ in range(5):
            ledger.note()
        ledger.note("sharing")
    assert [one["where"] for one in logs] == ["round", "sharing"]
    assert "OverflowError: a number too large" in logs[0]["traceback"]
    assert len(logs[0]["about"]) <= 200
    assert ledger.errors.counts == {"round": 5, "sharing": 1}


def test_of_many_places_only_so_many_are_logged() -> None:
    ledger = Ledger()
    with capture_logs() as logs:
        for number in range(2 * SITES_MAX):
            ledger.note(f"place {number}", may_end=False)
    assert len(logs) == SITES_MAX


def test_more_than_so_many_within_a_minute_end_it_once() -> None:
    ledger = Ledger()
    for _ in range(INTERNAL_ERRORS_MAX):
        ledger.note()
    assert ledger.ends == []
    ledger.note()
    ledger.note()
    (reason,) = ledger.ends
    assert f"more than {INTERNAL_ERRORS_MAX} internal errors within 60 s" in reason


async def test_each_place_in_the_tasks_of_a_group_is_logged_once() -> None:
    ledger = Ledger()

    async def raises(kind: type[Exception]) -> None:
        raise kind

    async def work(kind: type[Exception]) -> None:
        async with asyncio.TaskGroup() as outer, asyncio.TaskGroup() as inner:
            outer.create_task(asyncio.sleep(0))
            inner.create_task(raises(kind))

    with capture_logs() as logs:
        for kind in (OverflowError, KeyError, OverflowError):
            with pytest.raises(ExceptionGroup) as met:
                await work(kind)
            ledger.errors.note("task_policies", met.value)
    assert [one["traceback"].splitlines()[-1] for one in logs] == ["OverflowError", "KeyError"]
    assert ledger.errors.counts == {"task_policies": 3}
    assert ledger.ends == []


async def test_a_task_that_is_cancelled_ends() -> None:
    ledger = Ledger()
    task = asyncio.create_task(ledger.errors.keep("time", asyncio.Event().wait))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ledger.errors.counts


# A whole daemon.


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDaemon]:
    snapshot = PolicySnapshot({"gold": Group("gold", Limit(Rates(1_000_000)))})
    with running_daemon(tmp_path, snapshot) as daemon:
        daemon.daemon.errors.restart_pause_s = 0.001
        yield daemon


def samples_of(running: RunningDaemon) -> list[Sample]:
    """Its figures, read on its own loop: nobody changes them meanwhile."""
    return running._call(lambda: list(Telemetry(running.daemon).samples()))


def wait_until(running: RunningDaemon, holds: Callable[[], bool]) -> None:
    """Wait for a condition on the daemon's own loop."""

    async def waited() -> None:
        async with asyncio.timeout(WAIT_S):
            while not holds():  # noqa: ASYNC110 -- nothing tells
                await asyncio.sleep(0.005)

    asyncio.run_coroutine_threadsafe(waited(), running.loop).result(WAIT_S + 1)


def test_a_request_that_raises_is_an_internal_error_and_others_are_answered(
    running: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = running.daemon
    assert isinstance(running.ask(GOLD)[0], Decision)
    with monkeypatch.context() as patch:
        patch.setattr(daemon.core.limiter, "decide", boom)
        for _ in range(2 * INTERNAL_ERRORS_MAX):
            with pytest.raises(InternalError):
                running.ask(GOLD)
    assert isinstance(running.ask(GOLD)[0], Decision)
    with pytest.raises(UnknownGroup):
        running.ask(Request(group="none"))
    assert daemon.errors.counts == {"acquire": 2 * INTERNAL_ERRORS_MAX}
    assert daemon.halted is None
    health = daemon.health()
    assert health.ready
    assert any(note.startswith("internal errors: ") for note in health.degraded)
    samples = {(one.name, one.labels): one.value for one in samples_of(running)}
    assert samples["rgd_internal_errors_total", ("acquire",)] == 2 * INTERNAL_ERRORS_MAX


def test_each_part_is_closed_whatever_the_others_raise(
    running: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, closed = running.daemon, list[str]()

    def raising(name: str, close: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        async def closing() -> None:
            await close()
            closed.append(name)
            boom()

        return closing

    names = ["exchange", "policies", "usage_log"]
    for name in names:
        part = getattr(daemon.parts, name)
        monkeypatch.setattr(part, "close", raising(name, part.close))
    asyncio.run_coroutine_threadsafe(daemon.close(), running.loop).result(WAIT_S)
    assert closed == names
    assert daemon.errors.counts["close"] == 3


async def test_what_cannot_be_closed_is_waited_for_no_longer_than_said() -> None:
    async with asyncio.timeout(WAIT_S):
        stack = AsyncExitStack()
        stack.push_async_callback(asyncio.Event().wait)
        with capture_logs() as logs:
            await close_within(stack, 0.01)
    assert [one["event"] for one in logs] == ["gave up waiting for an orderly end"]


def test_at_its_exit_a_process_looks_for_no_cycles() -> None:
    # What is registered first runs last.
    script = """
import atexit, gc
from rgd.app.process import tune_interpreter
atexit.register(lambda: print(gc.get_freeze_count() > 0))
tune_interpreter()
"""
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert ran.stdout == b"True\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("", "_until_wake_s"),
        ("traffic", "decoded"),
        ("", "_carry_out"),
        ("traffic._dialect", "encode"),
        ("traffic", "_send_one"),
        ("", "_append"),
        ("parts.exchange", "receive_dated"),
        ("parts.policies", "_take_all"),
    ],
)
def test_whatever_part_raises_now_and_then_the_daemon_continues_answering(
    running: RunningDaemon, monkeypatch: pytest.MonkeyPatch, path: str, method: str
) -> None:
    daemon, dice = running.daemon, Random(1)
    owner: Any = daemon
    for name in filter(None, path.split(".")):
        owner = getattr(owner, name)
    call = getattr(owner, method)

    def sometimes(*args: Any, **kwargs: Any) -> Any:
        if dice.random() < 0.2:
            boom()
        return call(*args, **kwargs)

    monkeypatch.setattr(owner, method, sometimes)
    # The memory's table is told of a change, and the exchange and the log of each round.
    before = daemon.core.identity.sequence
    wait_until(
        running,
        lambda: (
            isinstance(daemon.acquire(GOLD), Decision)
            and daemon.core.identity.sequence > before + 15
        ),
    )
    monkeypatch.undo()
    assert daemon.halted is None
    if method != "_take_all":
        assert daemon.errors.counts.total() > 0
    # And it is whole again: what it says comes back, and rounds are logged.
    heard, logged = daemon.core.link.received_at or 0, daemon.parts.usage_log.appended
    wait_until(
        running,
        lambda: (
            isinstance(daemon.acquire(GOLD), Decision)
            and (daemon.core.link.received_at or 0) > heard
            and daemon.parts.usage_log.appended > logged
        ),
    )


def test_a_message_that_a_bug_cannot_decode_is_dropped_and_ends_nothing(
    running: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = running.daemon
    with monkeypatch.context() as patch:
        patch.setattr("rgd.wire.dialect.decode", boom)
        wait_until(running, lambda: daemon.traffic.dropped["internal_error"] >= 3)
    assert daemon.errors.counts["decode"] >= 3
    assert daemon.halted is None


def test_policies_that_the_log_has_no_room_for_are_logged_with_a_later_round(
    running: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, offered = running.daemon, list[bool]()

    def append(item: Loggable, **_time: int) -> bool:
        offered.append(isinstance(item, PoliciesInForce))
        return len(offered) > 2

    def change() -> None:
        monkeypatch.setattr(daemon.parts.usage_log, "append", append)
        daemon._on_snapshot(daemon.snapshot(), 7)

    running._call(change)
    wait_until(running, lambda: isinstance(daemon.acquire(GOLD), Decision) and len(offered) > 4)
    assert offered[:5] == [True, False, True, False, False]


def test_figures_are_read_up_to_the_one_that_raises() -> None:
    ledger = Ledger()

    def samples() -> Iterator[Sample]:
        yield Sample("rgd_peers", (), 3)
        boom()

    assert list(ledger.errors.figures(samples)) == [Sample("rgd_peers", (), 3)]
    assert ledger.errors.counts == {"metrics": 1}


def test_a_view_and_a_figure_that_raise_leave_the_others(
    running: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = running.daemon
    running.ask(GOLD)
    monkeypatch.setattr(daemon.core.rounds, "advertised_demand", boom)
    monkeypatch.setattr("rgd.app.daemon.group_view", boom)
    with pytest.raises(InternalError):
        daemon.group("gold")
    names = {one.name for one in samples_of(running)}
    assert {"rgd_peers", "rgd_log_entries_total", "rgd_internal_errors_total"} <= names
    monkeypatch.setattr("rgd.app.daemon.health", boom)
    assert daemon.health().ready
    assert daemon.errors.counts == {"view": 2, "metrics": 1}
