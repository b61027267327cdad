"""One broker's rounds over a real limiter and usage map, for test_rounds*.py."""

from dataclasses import dataclass, field

from rgd.core.broker.link import Link
from rgd.core.broker.mode import Mode
from rgd.core.broker.parts import gate_of
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.decision import Decision, Request
from rgd.core.exchange.columns import ShareColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import Sender
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import Group, GroupKey, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI
from tests.unit.core.values import TOPIC, advertised, ms, rates

SETTINGS = BrokerSettings(Sender("b1", 1), full_every_rounds=1_000_000)
GROUPS = {"gold": Group("gold", Limit(rates(100))), "trial": Group("trial", Limit(rates(1000)))}


@dataclass
class House:
    """Rounds over a real limiter that alone is live; every request is of one group, named directly."""

    settings: BrokerSettings = SETTINGS
    groups: dict[str, Group] = field(default_factory=lambda: dict(GROUPS))
    granted: int = 0
    log: list[ShareColumns] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.index = GroupIndex(self.settings.bounds.exchange)
        self.usage = UsageMap(self.index)
        self.peers = Peers(0)
        gate = gate_of(
            self.settings, lambda group, kind, _: self.sharing.first_share(group, kind, ms(0))
        )
        self.limiter = gate
        self.sharing = Sharing(self.settings, self.usage, self.peers, Link(1, 1), gate)
        self.sharing.mode = Mode.LIVE
        self.change(self.groups)
        self.rounds = Rounds(self.settings, self.limiter.news, self.sharing, self.index)

    def change(self, groups: dict[str, Group], at: float = 0) -> None:
        """Put these groups in force, in place of every other."""
        few = self.sharing.set_policies(PolicySnapshot(groups))
        self.limiter.set_policies(PolicySnapshot(groups), ms(at))
        self.sharing.share_out(few, ms(at))

    def ask(self, messages: int, at: float, group: str = "gold", size: int = 0) -> None:
        request = Request(messages=messages, bytes=size, group=group, topic=TOPIC)
        answer = self.limiter.acquire(request, ms(at))
        assert isinstance(answer, Decision)
        self.granted += answer.messages
        self.rounds.collect_unreported()
        self.rounds.tick(ms(at))

    def urgent(self) -> list[GroupKey]:
        """The groups that ask for an early report."""
        return [self.index.keys[slot] for slot in self.rounds.urgent]

    def early(self, at: float) -> list[UsageRow]:
        return list(self.rounds.early(ms(at)))

    def step_through(self, at: float) -> int:
        """End the round that was begun; returns in how many pieces."""
        pieces = 0
        while self.rounds.is_ending:
            self.rounds.step(ms(at))
            pieces += 1
        return pieces

    def finish(self) -> list[UsageRow]:
        """The rows that the round tells; what it logs is in `log`."""
        told, shown = self.rounds.finish()
        self.log.append(shown)
        return list(told)

    def end(self, at: float) -> list[UsageRow]:
        self.rounds.begin()
        self.step_through(at)
        return self.finish()

    def told(self) -> dict[str, UsageRow]:
        """What the peers were told and was not taken back."""
        return {row.group: row for row in advertised(self.rounds)}

    def logged(self, group: str = "gold") -> ShareRow:
        """The row of the newest record."""
        return next(row for row in self.log[-1] if row.usage.group == group)


def wanted(row: UsageRow) -> float:
    return row.wanted.messages / MILLI
