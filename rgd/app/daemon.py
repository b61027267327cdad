"""The daemon: one broker's core, its doors, and the tasks that carry events in and effects out.

Laws: one task at a time touches the core (everything runs on one event loop and
no call into the core waits), so there are no locks; an effect is carried out in
order; nothing that waits (a send, a disk) is ever waited for by a request.

Its life has three phases, `startup`, `serve` and `shutdown`. If the exchange
cannot be reached it serves all the same and says that it is degraded.

Which parts it is made of is decided in `rgd.app.wiring`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, assert_never

import structlog

from rgd.app.clock import Clock
from rgd.app.explain import explain
from rgd.app.policies import admin
from rgd.app.policies.source import Policies
from rgd.app.policies.table import TablePolicies
from rgd.app.recorder import Recorder
from rgd.app.traffic import INLINE_ROWS_MAX, Traffic
from rgd.app.views import broker_views, group_view, health
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Alarm, AlarmCode, Append, Effect, Halt, Publish, Remember
from rgd.core.broker.events import (
    DemandUnreported,
    Event,
    MessageReceived,
    PoliciesChanged,
    Started,
    Stopping,
    Woken,
)
from rgd.core.buckets.decision import Answer, Request
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.records import Change
from rgd.core.units import NS_PER_S
from rgd.errors import RgdError
from rgd.ports.daemon import BrokerView, ExplainView, GroupView, Health
from rgd.ports.exchange import Exchange, ExchangeClosed, ExchangeDown
from rgd.ports.usagelog import UsageLog

#: Names of groups that are made known to the core in one go: more would keep requests waiting.
NAMES_SLICE: Final = 256

#: Rest between two slices of the core's work, and between two large reports.
SLICE_REST_S: Final = 0.001

#: Pause between two tries to reach the exchange.
RECONNECT_S: Final = 1.0

_log = structlog.get_logger("rgd.daemon")

#: Alarms that call for a person's eye.
_WARNINGS: Final = frozenset(
    {
        AlarmCode.PEER_EXPIRED,
        AlarmCode.NAME_CONFLICT,
        AlarmCode.POLICIES_DIFFER,
        AlarmCode.ISOLATED,
    }
)


class Halted(RgdError):
    """The daemon may not go on: another one speaks for its name."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a daemon is made of."""

    clock: Clock
    exchange: Exchange
    policies: Policies
    usage_log: UsageLog
    #: Stores the names of the live peers for the next start; never raises.
    remember: Callable[[tuple[str, ...]], None]
    #: Hears how long a round took, in seconds.
    observe_round: Callable[[float], None]
    #: Makes the exchange's place, where that may be needed; raises ExchangeDown.
    prepare: Callable[[], Awaitable[None]] | None = None


class RgdDaemon:
    """One running broker; fulfils `rgd.ports.daemon.Daemon`."""

    def __init__(self, core: Broker, parts: Parts, cluster: str) -> None:
        self.core = core
        self.broker = core.settings.speaker.broker
        self.cluster = cluster
        self.parts = parts
        self.traffic = Traffic(parts.exchange)
        self.recorder = Recorder(parts.usage_log)
        #: Set when the time keeper should look at the core again.
        self._poked = asyncio.Event()
        self._demand_unreported = False
        self._is_draining = False
        #: Why this daemon may not go on: another one speaks for its name.
        self.halted: str | None = None
        #: What works less well than it should, by what it is.
        self._notes = {"exchange": "connecting"}
        core.limiter.on_unreported = self._on_unreported

    # The doors (rgd.ports.daemon).

    def acquire(self, request: Request) -> Answer:
        """Decide one request now (the short road)."""
        return self.core.limiter.acquire(request, self.parts.clock.now())

    def book(self) -> PolicyBook:
        """The policies in force."""
        return self.core.sharing.book

    def groups(self) -> tuple[GroupView, ...]:
        """Every group, by name."""
        return tuple(self.group(name) for name in sorted(self.book().groups))

    def group(self, name: str) -> GroupView:
        """One group with its rows."""
        return group_view(self.core, name, self.parts.clock.now())

    def brokers(self) -> tuple[BrokerView, ...]:
        """Every member known, this one too."""
        return broker_views(self.core, self.parts.clock.now())

    def explain(self, name: Request) -> ExplainView:
        """Why a name is limited, or is not."""
        return explain(self.core, name, self.parts.clock.now())

    def health(self) -> Health:
        """Whether shares are known, and what is degraded."""
        policies = self.parts.policies
        beside = {
            "exchange": self.parts.exchange.trouble,
            "usage log": self.parts.usage_log.trouble,
            "policies": policies.trouble,
        }
        troubles = self._notes | {what: why for what, why in beside.items() if why}
        notes = tuple(f"{what}: {why}" for what, why in troubles.items())
        state = health(self.core, is_draining=self._is_draining, notes=notes)
        return replace(state, ready=state.ready and policies.is_settled)

    async def change(self, key: str, change: Change) -> None:
        """Change one policy."""
        await self.parts.policies.change(key, change)

    async def delete_group(self, name: str) -> None:
        """Delete a group."""
        await admin.delete_group(self.parts.policies, name)

    async def attach(self, key: str, group: str | None) -> None:
        """Attach a tenant, namespace or topic to a group, or to none."""
        await admin.attach(self.parts.policies, key, group)

    # Its life.

    async def run(self, until: asyncio.Event, *, on_up: Callable[[], None]) -> None:
        """Serve until `until` is set (or `halted` is), then leave in order."""
        await self.parts.usage_log.open()
        self._on_book(self.parts.policies.book(), 0)
        self._handle(Started(self.parts.clock.now()))
        on_up()
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(self._keep_time(), name="time"),
                tasks.create_task(self._follow_exchange(until), name="exchange"),
                tasks.create_task(self._follow_policies(), name="policies"),
                tasks.create_task(self.traffic.send(), name="send"),
                tasks.create_task(self.recorder.run(), name="log"),
            ]
            await until.wait()
            self._handle(Stopping(self.parts.clock.now()))
            await self.traffic.flush()
            for task in running:
                task.cancel()
        self.recorder.finish()

    async def close(self) -> None:
        """Let go of the exchange, the policies and the log."""
        await self.parts.exchange.close()
        await self.parts.policies.close()
        await self.parts.usage_log.close()

    def drain(self) -> None:
        """Tell load balancers to go elsewhere."""
        self._is_draining = True

    # Tasks.

    async def _keep_time(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._until_wake_s()):
                    await self._poked.wait()
            self._poked.clear()
            if self._demand_unreported:
                self._demand_unreported = False
                self._handle(DemandUnreported(self.parts.clock.now()))
            wake_at = self.core.wake_at
            if wake_at is not None and self.parts.clock.now() >= wake_at:
                self._wake()
                await self._rest()

    async def _follow_exchange(self, until: asyncio.Event) -> None:
        await self._reach(self._join, "exchange")
        self.traffic.reached()
        while True:
            try:
                payloads = await self.parts.exchange.receive()
            except ExchangeClosed:
                return
            for payload in payloads:
                await self._take(payload)
            if self.halted is not None:
                until.set()

    async def _join(self) -> None:
        if self.parts.prepare is not None:
            await self.parts.prepare()
        await self.parts.exchange.open()

    async def _follow_policies(self) -> None:
        if isinstance(self.parts.policies, TablePolicies):
            await self._reach(self.parts.policies.open, "policies table")
        with suppress(ExchangeClosed):
            await self.parts.policies.follow(self._on_book)

    async def _reach(self, attempt: Callable[[], object], what: str) -> None:
        """Try until it can be reached; say once that it cannot, and once that it can."""
        is_known_down = False
        while True:
            try:
                result = attempt()
                assert asyncio.iscoroutine(result)
                await result
            except ExchangeDown as error:
                if not is_known_down:
                    _log.warning(f"cannot reach {what}", reason=str(error))
                is_known_down = True
                self._notes[what] = f"unreachable: {error}"
                await asyncio.sleep(RECONNECT_S)
            else:
                if is_known_down:
                    _log.info(f"reached {what}")
                self._notes.pop(what, None)
                return

    # Events in, effects out.

    async def _rest(self) -> None:
        """Let the requests in that came while the core worked on a slice.

        A request takes some turns of the event loop: where there is more to do at once, each turn
        would be another slice.
        """
        wake_at = self.core.wake_at
        is_behind = wake_at is not None and self.parts.clock.now() >= wake_at
        await asyncio.sleep(SLICE_REST_S if is_behind else 0)

    def _handle(self, event: Event) -> None:
        for effect in self.core.handle(event):
            self._carry_out(effect)
        # The core may want to be woken earlier than it did before.
        self._poked.set()

    def _wake(self) -> None:
        sequence, began = self.core.sequence, self.parts.clock.now()
        self._handle(Woken(began))
        if self.core.sequence != sequence:
            self.parts.observe_round((self.parts.clock.now() - began) / NS_PER_S)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Publish(message):
                self.traffic.post(message)
            case Append(record):
                self.recorder.add(record, self.parts.clock.unix_ms())
            case Remember(peers):
                self.parts.remember(peers)
            case Alarm(code, broker):
                say = _log.warning if code in _WARNINGS else _log.info
                say(code.value.replace("_", " "), broker=broker or self.broker)
            case Halt(reason):
                _log.error("refused to go on", reason=reason)
                self.halted = reason
            case _:
                assert_never(effect)

    async def _take(self, payload: bytes) -> None:
        message = await self.traffic.decoded(payload)
        if message is None:
            return
        if isinstance(message, Report) and message.full:
            await self._introduce(message.rows)
        self._handle(MessageReceived(self.parts.clock.now(), message))
        # Reports come in crowds at the rounds' ends: let requests in between.
        is_large = isinstance(message, Report) and len(message.rows) > INLINE_ROWS_MAX
        await asyncio.sleep(SLICE_REST_S if is_large else 0)

    async def _introduce(self, rows: UsageColumns) -> None:
        """Give the groups of a whole state their places, thousands of new ones slice by slice."""
        for begin in range(0, len(rows), NAMES_SLICE):
            end = begin + NAMES_SLICE
            self.core.index.places(rows.groups[begin:end], rows.kinds[begin:end])
            await asyncio.sleep(0)

    def _on_book(self, book: PolicyBook, policies_hash: int) -> None:
        self._handle(PoliciesChanged(self.parts.clock.now(), book, policies_hash))

    def _on_unreported(self) -> None:
        self._demand_unreported = True
        self._poked.set()

    def _until_wake_s(self) -> float | None:
        wake_at = self.core.wake_at
        if wake_at is None:
            return None
        return max(0.0, (wake_at - self.parts.clock.now()) / NS_PER_S)
