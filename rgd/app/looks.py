"""What people see of the running daemon: each look is one slice of bounded work on the event loop.

Law: a look changes nothing; what it raises unforeseen is noted and costs the caller an answer, nobody else
anything.
"""

from collections.abc import Callable, Sequence

from rgd.app.containment import InternalErrors, contained
from rgd.app.stock_neighbours import StockNeighbours
from rgd.core.broker.broker import Broker
from rgd.core.buckets.decision import Request
from rgd.core.buckets.throttled import Throttled
from rgd.core.gate import looks
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Nanos
from rgd.views.explain import explain
from rgd.views.groups import group_view, group_views
from rgd.views.members import broker_views
from rgd.views.model import BrokerView, ExplainView, GroupView


class Looks:
    """The part of `rgd.ports.daemon.Daemon` that only looks."""

    core: Broker
    errors: InternalErrors
    now: Callable[[], Nanos]
    stock: StockNeighbours | None

    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""
        return self.core.sharing.snapshot

    @contained("view")
    def group(self, name: str) -> GroupView:
        """One group with its rows."""
        return group_view(self.core, name, self.now())

    @contained("view")
    def groups(self, names: Sequence[str]) -> list[GroupView]:
        """Those of some groups that exist, with their rows."""
        return group_views(self.core, names, self.now())

    def broker_names(self) -> list[str]:
        """The names of every member known, this one too."""
        stock = self.core.stock.members.names()
        return [self.core.settings.sender.broker, *self.core.peers.names(), *stock]

    @contained("view")
    def brokers(self, among: Sequence[str]) -> tuple[BrokerView, ...]:
        """The members known among these names, in their order."""
        also_pulsar = self.stock.senders if self.stock else ()
        return broker_views(self.core, self.now(), among, also_pulsar)

    @contained("view")
    def explain(self, name: Request) -> ExplainView:
        """Why a name is limited, or is not."""
        return explain(self.core, name, self.now())

    @contained("view")
    def throttled(self, topic: str) -> list[Throttled]:
        """What throttled the dispatch of a topic's subscriptions lately."""
        return self.core.gate.ask(looks.throttled_topic, topic, self.now())

    @contained("view")
    def throttled_partitions(self, topic: str) -> list[str]:
        """The partitions of a topic whose dispatch was throttled lately."""
        return self.core.gate.ask(looks.throttled_partitions, topic, self.now())
