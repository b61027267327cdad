"""What the gate's process does between two planes. Not covered: the processes, which tests/e2e/test_planes.py has."""

import asyncio
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rgd.app.clock import SystemClock
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
    return GateProcess(gate, SystemClock(), asyncio.Event(), OnIsolation.OPEN, hold_s)


def use(process: GateProcess) -> None:
    """Have a share of 1,000 of 8,000 in force, by a plane that leads."""
    for part in parts_between(None, GOLD):
        process.take_policies(part)
    now = Nanos(time.monotonic_ns())
    process.put_policies(GOLD.limits.broker, now, None)
    process.gate.set_depth(NS_PER_S)
    process.limiter.group(GOLD.groups["gold"], Kind.PUBLISH, now)
    process.gate.give_slot(KEY, 0, Rates(1_000), now)


def share(process: GateProcess) -> Rates:
    state = process.limiter.group(GOLD.groups["gold"], Kind.PUBLISH, Nanos(time.monotonic_ns()))
    return state.share


async def test_shares_hold_without_a_plane_and_then_those_of_isolation_come() -> None:
    process = gate_process(hold_s=0.0)
    use(process)
    process.detach("it died")
    assert share(process) == Rates(1_000)
    assert "plane: it died" in process.health().degraded
    while share(process) == Rates(1_000):  # noqa: ASYNC110 -- nothing tells
        await asyncio.sleep(0)
    assert share(process).is_unlimited


async def test_a_plane_that_led_begins_the_hold_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[float] = []
    loop = asyncio.get_running_loop()
    later = loop.call_later

    def call_later(delay_s: float, *rest: Any) -> asyncio.TimerHandle:
        begun.append(delay_s)
        return later(delay_s, *rest)

    monkeypatch.setattr(loop, "call_later", call_later)
    process = gate_process()
    use(process)
    # The second of these had told no shares.
    for leads in (True, False, True):
        process.gate.is_led = leads
        process.detach("it died")
    assert begun == [3600.0] * 2


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
