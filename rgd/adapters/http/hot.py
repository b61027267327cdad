"""The calls that connections answer themselves: what they are, and who answers each.

Law: they are answered from the gate's own memory, so they need no plane, and nothing here loads what only the plane needs.
The plane describes them (`openapi`) without having anybody who answers them.
"""

from typing import Final

from rgd.adapters.http.acquire import Acquire
from rgd.adapters.http.check import Check
from rgd.adapters.http.endpoint import described
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.leases import Leases
from rgd.adapters.http.probes import Probes
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.settle import Settle
from rgd.adapters.http.shadow import Shadow
from rgd.adapters.http.turns import Turns
from rgd.ports.answers import Answers
from rgd.ports.door import Ungoverned

#: What each of them is.
HOT: Final = tuple(
    endpoint
    for calls in (Acquire, Settle, Leases, Check, Probes)
    for endpoint in described(calls).values()
)


class HotCalls:
    """Answers them.

    Args:
        daemon: decides.
        settings: their limits.
        gate: knows who may hear reasons.
    """

    def __init__(self, daemon: Answers, settings: HttpSettings, gate: Gate) -> None:
        self.shadow: Shadow | None = None
        if settings.shadow:
            self.shadow = Shadow(denies_ungoverned=settings.ungoverned == Ungoverned.DENY)
        turns = Turns()
        self.acquire = Acquire(daemon, settings, turns, self.shadow)
        calls = (
            self.acquire,
            Settle(daemon, settings, turns),
            Leases(daemon, settings, self.shadow),
            Check(self.acquire, daemon.nearest),
            Probes(daemon, gate),
        )
        self.routes = tuple(
            endpoint.route(getattr(one, name))
            for one in calls
            for name, endpoint in described(type(one)).items()
        )
