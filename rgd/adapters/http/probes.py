"""`/healthz` and `/readyz`: what looks after the daemon.

Law: alive is not ready. `/readyz` is 503 until shares are known and while the
daemon drains; an exchange that is away only degrades it, because an outage of
Pulsar must not take every local endpoint away. Where there are tokens, only who may read hears reasons: they
have paths and names. Everybody else hears what is degraded. `scrapes` has `/metrics`.
"""

from msgspec import Struct

from rgd.adapters.http.endpoint import Endpoint
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.reply import Call, Reply, json_reply
from rgd.ports.answers import Answers
from rgd.ports.door import Scope


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

    def __init__(self, daemon: Answers, gate: Gate) -> None:
        self._daemon = daemon
        self._gate = gate

    @Endpoint("GET", "/healthz", None, {200: Alive}, is_probe=True)
    def healthz(self, _call: Call) -> Reply:
        """Whether the process is alive."""
        return json_reply(Alive())

    @Endpoint("GET", "/readyz", None, {200: Ready, 503: NotReady}, is_probe=True)
    def readyz(self, call: Call) -> Reply:
        """Whether traffic should come here: shares are known, and it does not drain."""
        health = self._daemon.health()
        degraded = health.degraded
        if not self._gate.lets(Scope.READ, call.headers.get("Authorization", "")):
            degraded = tuple(note.partition(": ")[0] for note in degraded)
        if health.ready and not self._gate.draining:
            return json_reply(Ready(ready=True, degraded=degraded))
        reason = "; ".join(degraded) or "shares are not known yet"
        if self._gate.draining:
            reason = "draining"
        return json_reply(NotReady(ready=False, reason=reason, degraded=degraded), status=503)
