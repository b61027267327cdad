"""What the gate's process does between two planes. Not covered: the processes, which tests/e2e/test_planes.py has."""

import asyncio
import pickle
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from rgd.app.clock import SystemClock
from rgd.app.planes.gate_end import GateEnd
from rgd.app.planes.gate_process import GateProcess
from rgd.app.process import Halted
from rgd.core.buckets.level import BucketSettings
from rgd.core.gate.local import LocalGate
from rgd.core.gate.policy_parts import parts_between
from rgd.core.policies.model import Group, GroupKey, Limit, OnIsolation, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_S, Kind, Nanos
from rgd.errors import RgdError, Unavailable
from rgd.ports.answers import Health

GOLD = PolicySnapshot({"gold": Group("gold", Limit(Rates(8_000)))})
KEY = GroupKey("gold", Kind.PUBLISH)


def gate_process() -> GateProcess:
    gate = LocalGate(BucketSettings(NS_PER_S, 1000, 1000))
    return GateProcess(gate, SystemClock(), asyncio.Event(), OnIsolation.OPEN, 3600 * NS_PER_S)


class End(GateEnd):
    """The link of a plane that just spoke."""

    def __init__(self) -> None:
        self.received_at = Nanos(time.monotonic_ns())
        self.noted: list[str] = []

    def fall_silent(self) -> None:
        """Let its last word be an hour old."""
        self.received_at = Nanos(time.monotonic_ns() - 3600 * NS_PER_S)

    def note(self, name: str, *_args: object) -> None:
        self.noted.append(name)


@asynccontextmanager
async def keeping_up(process: GateProcess) -> AsyncIterator[None]:
    upkeep = asyncio.ensure_future(process.keep_up())
    yield
    upkeep.cancel()


def use(process: GateProcess) -> End:
    """Have a share of 1,000 of 8,000 in force, by a plane that leads."""
    process.attach(end := End())
    for part in parts_between(None, GOLD):
        process.take_policies(part)
    now = Nanos(time.monotonic_ns())
    process.put_policies(GOLD.limits.broker, now, None)
    process.gate.set_depth(NS_PER_S)
    process.limiter.group(GOLD.groups["gold"], Kind.PUBLISH, now)
    process.gate.give_slot(KEY, 0, Rates(1_000), now)
    return end


def share(process: GateProcess) -> Rates:
    state = process.limiter.group(GOLD.groups["gold"], Kind.PUBLISH, Nanos(time.monotonic_ns()))
    return state.share


@pytest.mark.parametrize("trouble", ["so did this one", "its process says nothing"])
async def test_shares_hold_for_so_long_and_no_longer_for_a_plane_that_tells_none(
    trouble: str,
) -> None:
    process = gate_process()
    end = use(process)
    end.fall_silent()
    if is_gone := trouble == "so did this one":
        process.detach("it died")
        process.attach(End())
        process.detach(trouble)
    assert share(process) == Rates(1_000)
    async with keeping_up(process):
        while not share(process).is_unlimited:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0)
    assert f"plane: {trouble}" in process.health().degraded
    # One that goes on has to tell its shares again.
    assert ("isolated" in end.noted) is not is_gone


async def test_while_a_plane_takes_over_the_gate_is_as_ready_as_it_was() -> None:
    process = gate_process()
    starting = Health(ready=False, degraded=("starting",))
    process.say_health(starting)
    assert not process.health().ready
    use(process)
    process.say_health(Health(ready=True))
    process.detach("it died")
    process.gate.is_led = False
    process.say_health(starting)
    assert process.health().ready
    process.gate.set_depth(NS_PER_S)
    process.say_health(starting)
    assert not process.health().ready


async def test_only_what_no_other_plane_can_mend_ends_the_daemon() -> None:
    process = gate_process()
    process.is_up()
    process.cannot_go_on(Unavailable("a full disk"))
    assert not process.until.is_set()
    process.cannot_go_on(Halted("the name is taken"))
    assert isinstance(process.failure, Halted)
    first = gate_process()
    first.cannot_go_on(Unavailable("a full disk"))
    assert isinstance(first.failure, Unavailable)


async def test_what_rounds_leave_to_do_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    process, done = gate_process(), asyncio.Event()
    monkeypatch.setattr(process.gate, "work", lambda _now: done.set())
    async with keeping_up(process):
        await done.wait()


def kinds(kind: type[RgdError]) -> Iterator[type[RgdError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from kinds(one)


def test_every_error_survives_the_way_between_two_processes() -> None:
    for kind in kinds(RgdError):
        error = kind.__new__(kind, "what is wrong")
        error.__dict__["about"] = 7
        found = pickle.loads(pickle.dumps(error))
        assert (type(found), str(found), found.__dict__) == (kind, str(error), {"about": 7})
