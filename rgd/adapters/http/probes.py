"""`/healthz`, `/readyz` and `/metrics`: what looks after the daemon.

Law: alive is not ready. `/readyz` is 503 until shares are known and while the
daemon drains; an exchange that is away only degrades it, because an outage of
Pulsar must not take every local endpoint away. Where there are tokens, only who may read hears reasons: they
have paths and names. Everybody else hears what is degraded.

How metrics are rendered is `rgd.adapters.metrics`' business: in slices, each in a turn of those who read.
Here only so many scrapes may be under way.
"""

from typing import Final

from msgspec import Struct

from rgd.adapters.http.errors import Overloaded
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.reply import Call, MetricsPage, Reply, json_reply
from rgd.adapters.http.turns import Turns
from rgd.ports.daemon import Daemon
from rgd.ports.door import Scope

#: Scrapes at work or waiting; the next one is answered 503.
SCRAPES_MAX: Final = 4


class Alive(Struct):
    """The process answers."""

    alive: bool = True


class Ready(Struct, omit_defaults=True):
    """Whether shares are known; `degraded` only where something works less well."""

    ready: bool
    degraded: tuple[str, ...] = ()


class NotReady(Struct, omit_defaults=True):
    """Why no traffic should come here."""

    ready: bool
    reason: str
    degraded: tuple[str, ...] = ()


class Probes:
    """Answers those who look after the daemon."""

    def __init__(self, daemon: Daemon, metrics: MetricsPage, turns: Turns, gate: Gate) -> None:
        self._daemon = daemon
        self._metrics = metrics
        self._turns = turns
        self._gate = gate
        self._scrapes = 0
        #: Set when the daemon is about to stop: send no new traffic.
        self.draining = False

    def healthz(self, _call: Call) -> Reply:
        """The process is alive."""
        return json_reply(Alive())

    def readyz(self, call: Call) -> Reply:
        """Whether traffic should come here."""
        health = self._daemon.health()
        degraded = health.degraded
        if not self._gate.lets(Scope.READ, call.headers.get("Authorization", "")):
            degraded = tuple(note.partition(": ")[0] for note in degraded)
        if self.draining:
            return json_reply(
                NotReady(ready=False, reason="draining", degraded=degraded), status=503
            )
        if not health.ready:
            reason = "; ".join(degraded) or "shares are not known yet"
            return json_reply(NotReady(ready=False, reason=reason, degraded=degraded), status=503)
        return json_reply(Ready(ready=True, degraded=degraded))

    async def metrics(self, call: Call) -> Reply:
        """The metrics in the format that the Accept header asks for."""
        if self._scrapes >= SCRAPES_MAX:
            raise Overloaded(f"{SCRAPES_MAX} scrapes of /metrics are under way already")
        self._scrapes += 1
        try:
            body, content_type = await self._metrics(
                call.headers.get("Accept", ""), self._turns.next
            )
        finally:
            self._scrapes -= 1
        return Reply(body=body, content_type=content_type)
