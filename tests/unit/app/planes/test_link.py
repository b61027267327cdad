"""The link between the two processes: order, faults, notes, turns, the end. Both ends are in one process here.

Not covered: two real processes, which tests/e2e/test_planes.py has.
"""

import asyncio
import re
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from rgd.app import planes
from rgd.app.containment import InternalErrors
from rgd.app.planes.gate_end import TURN_NS, GateEnd
from rgd.app.planes.plane_end import LinkEnded, PlaneEnd
from rgd.app.planes.plane_process import PlaneHost
from rgd.app.planes.serving import Serving
from rgd.app.process import Halted
from rgd.app.recent_events import RecentEvents
from rgd.core.buckets.level import BucketSettings
from rgd.core.errors import UnknownGroup
from rgd.core.gate.local import LocalGate
from rgd.core.units import NS_PER_S, Nanos


class Host:
    """Of both ends: keeps what it was called with."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.has_heard = asyncio.Event()

    def hear(self, what: Any) -> int:
        self.heard.append(what)
        self.has_heard.set()
        return len(self.heard)


class Refused(Host):
    """Hears why a plane does not begin."""

    cannot_go_on = Host.hear


def depth(gate: LocalGate) -> int:
    return gate.group_burst_ns


def refuse(_gate: LocalGate) -> None:
    raise UnknownGroup("gold")


def halved(_gate: LocalGate, number: int) -> int:
    if number % 2:
        raise UnknownGroup(str(number))
    return number // 2


def give_what_cannot_cross(_gate: LocalGate) -> Any:
    return lambda: None


def work(_gate: LocalGate) -> None:
    until = time.monotonic_ns() + TURN_NS // 2
    while time.monotonic_ns() < until:
        pass


def take(_gate: LocalGate, _what: bytes) -> None:
    pass


def now() -> Nanos:
    return Nanos(time.monotonic_ns())


@asynccontextmanager
async def linked(
    host: Host | None = None,
) -> AsyncIterator[tuple[GateEnd, Host, InternalErrors, socket.socket]]:
    host, errors = host or Host(), InternalErrors(now, lambda reason: None)
    gate = LocalGate(BucketSettings(NS_PER_S, 1000, 1000))
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    with theirs:
        _, end = await loop.create_unix_connection(
            lambda: GateEnd(gate, host, errors, now), sock=ours
        )
        yield end, host, errors, theirs
        end.close()


async def in_plane(connected: socket.socket, act: Callable[[PlaneEnd], Awaitable[Any]]) -> Any:
    """What `act` gives, on an event loop of its own, which may wait."""

    async def run() -> Any:
        return await act(PlaneEnd(connected, on_end=lambda: None))

    # By the loop of the daemon, which treats sockets in a way of its own.
    return await asyncio.to_thread(lambda: uvloop.run(run()))


async def test_what_the_gate_raises_is_raised_where_it_was_asked_for() -> None:
    async def act(plane: PlaneEnd) -> None:
        with pytest.raises(UnknownGroup, match="gold"):
            plane.ask(refuse)
        with pytest.raises(RuntimeError, match="pickle"):
            plane.ask(give_what_cannot_cross)
        # The link goes on, but for what was told in vain.
        assert plane.ask(depth) == NS_PER_S
        plane.tell(refuse)
        with pytest.raises(LinkEnded):
            plane.ask(depth)

    async with linked() as (_, _, errors, connected):
        await in_plane(connected, act)
        assert errors.counts["link"] == 2


async def test_what_is_asked_in_pieces_is_answered_in_order_also_after_one_that_fails() -> None:
    async def act(plane: PlaneEnd) -> None:
        assert plane.ask_each(halved, range(0, 200, 2)) == [*range(100)]
        assert plane.ask_each(halved, []) == []
        with pytest.raises(UnknownGroup, match="3"):
            plane.ask_each(halved, [2, 3, 4, 5])
        assert plane.ask(depth) == NS_PER_S

    async with linked() as (_, _, errors, connected):
        await in_plane(connected, act)
        assert errors.counts["link"] == 2


async def test_what_is_told_waits_for_a_gate_that_is_slow() -> None:
    async def act(plane: PlaneEnd) -> None:
        for _ in range(50):
            plane.tell(work)
        for _ in range(2_000):
            plane.tell(take, bytes(2_000))
        plane.ask(depth)

    async with linked() as (_, _, errors, connected):
        await in_plane(connected, act)
        assert not errors.counts


async def test_notes_are_taken_in_a_turn_of_their_own() -> None:
    async def act(plane: PlaneEnd) -> None:
        host = plane.host = Host()
        # While it waits for this answer the notes come.
        plane.ask_host("hear", None)
        assert host.heard == []
        while len(host.heard) < 100:
            host.has_heard.clear()
            await host.has_heard.wait()
        assert host.heard == [*range(100)]

    async with linked() as (end, host, _, connected):
        plane = asyncio.ensure_future(in_plane(connected, act))
        for number in range(50):
            end.note("hear", number)
        await host.has_heard.wait()
        for number in range(50, 100):
            end.note("hear", number)
        await plane


async def test_without_a_gate_the_plane_is_told() -> None:
    ends = []

    async def act(connected: socket.socket) -> None:
        plane = PlaneEnd(connected, on_end=lambda: ends.append("ended"))
        with pytest.raises(LinkEnded):
            plane.ask(depth)

    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        await act(theirs)
    assert ends == ["ended"]


async def test_a_gate_that_goes_while_nobody_asks_is_noticed() -> None:
    ended = asyncio.Event()
    ours, theirs = socket.socketpair()
    with theirs:
        PlaneEnd(theirs, on_end=ended.set)
        ours.close()
        await ended.wait()


async def test_a_note_that_raises_costs_no_other() -> None:
    faults: list[str] = []

    async def act(plane: PlaneEnd) -> None:
        host = plane.host = Host()
        plane.on_fault = lambda error: faults.append(str(error))
        plane.ask_host("hear", None)
        await host.has_heard.wait()

    async with linked() as (end, _host, _, connected):
        plane = asyncio.ensure_future(in_plane(connected, act))
        end.note("no_such_thing")
        end.note("hear", "after it")
        await plane
    assert len(faults) == 1
    assert "no_such_thing" in faults[0]


async def test_a_plane_of_another_version_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["plane", "", "", "0.0.0"])
    async with linked(Refused()) as (_, host, _, connected):
        began = planes.plane_process._serve(connected, connected, RecentEvents())
        assert await asyncio.to_thread(lambda: uvloop.run(began)) == 1
        assert isinstance(host.heard[0], Halted)


def test_every_name_of_a_message_is_a_method_of_the_other_side() -> None:
    sources = {path: path.read_text() for path in Path(planes.__file__).parent.glob("*.py")}
    text = "".join(sources.values())
    to_gate = set(re.findall(r"(?:tell|ask)_host\(\s*\"(\w+)\"", text))
    to_plane = set(re.findall(r"(?:self|_end)\.note\(\s*\"(\w+)\"|self\.note, \"(\w+)\"", text))
    names = {name for pair in to_plane for name in pair if name}
    assert to_gate
    assert names
    assert {name for name in to_gate if not hasattr(Serving, name)} == set()
    assert {name for name in names if not hasattr(PlaneHost, name)} == set()
