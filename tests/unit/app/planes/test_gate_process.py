"""What the gate's process does between two planes. Not covered: the processes, which tests/e2e/test_planes.py has."""

import asyncio
import pickle
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

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


def gate_process(hold_s: float = 3600.0) -> GateProcess:
    gate = LocalGate(BucketSettings(NS_PER_S, 1000, 1000))
    hold_ns = int(hold_s * NS_PER_S)
    return GateProcess(gate, SystemClock(), asyncio.Event(), OnIsolation.OPEN, hold_ns)


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


async def test_shares_hold_without_a_plane_and_then_those_of_isolation_come() -> None:
    process = gate_process(hold_s=0.0)
    use(process)
    process.detach("it died")
    assert share(process) == Rates(1_000)
    assert "plane: it died" in process.health().degraded
    async with keeping_up(process):
        while share(process) == Rates(1_000):  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0)
    assert share(process).is_unlimited


async def test_beside_a_plane_that_says_nothing_shares_hold_as_long_and_it_is_told() -> None:
    process = gate_process(hold_s=3600.0)
    end = use(process)
    async with keeping_up(process):
        # A turn of the upkeep.
        await asyncio.sleep(0)
        assert share(process) == Rates(1_000)
        end.fall_silent()
        while "isolated" not in end.noted:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0)
        assert share(process).is_unlimited
        assert "plane: its process says nothing" in process.health().degraded
        # What it says then counts.
        end.received_at = now = Nanos(time.monotonic_ns())
        process.gate.set_depth(NS_PER_S)
        process.gate.set_shares([(0, Rates(1_000))], now)
        assert share(process) == Rates(1_000)


async def test_a_plane_that_told_no_shares_does_not_make_the_hold_longer() -> None:
    process = gate_process(hold_s=3600.0)
    end = use(process)
    end.fall_silent()
    process.detach("it died")
    process.attach(End())
    process.detach("so did this one")
    async with keeping_up(process):
        while not share(process).is_unlimited:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0)


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


async def test_what_rounds_leave_to_do_is_done() -> None:
    process = gate_process()
    worked = iter([True, True, False])
    done: list[Nanos] = []

    class Behind(LocalGate):
        is_behind = property(lambda _: next(worked))

        def work(self, now: Nanos) -> None:
            done.append(now)

    process.gate = Behind(BucketSettings(NS_PER_S, 1000, 1000))
    upkeep = asyncio.ensure_future(process.keep_up())
    while len(done) < 3:  # noqa: ASYNC110 -- nothing tells
        await asyncio.sleep(0)
    upkeep.cancel()


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
