"""Worlds under an almost even flow: every member is asked for a little at fixed moments, in parts.

What is wanted in a round is then exact, and what is admitted is what a fluid would be, to a unit:
the load under which a rule can be compared with its formula.
"""

from collections.abc import Sequence
from typing import Any

from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, GroupKey, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_S, Kind, to_milli
from sim.network import Network
from sim.world import BrainMaker, World

#: Questions a second; rates must be whole multiples of it.
TICKS_PER_S = 10


def quick_network() -> Network:
    """Everything arrives in the moment in which it is said."""
    return Network(delay_min_ns=0, delay_max_ns=0)


class Trickle:
    """Members that share groups, each asked for so many messages of each group a second."""

    def __init__(
        self,
        quotas: Sequence[float],
        brokers: int,
        make_brain: BrainMaker,
        *,
        round_s: int = 1,
        ticks_per_s: int = TICKS_PER_S,
        **settings: Any,
    ) -> None:
        self.world = World(network=quick_network(), make_brain=make_brain)
        self.round_s = round_s
        self._ticks_per_s = ticks_per_s
        names = [f"group-{place:04d}" for place in range(len(quotas))]
        self.keys = [GroupKey(name, Kind.PUBLISH) for name in names]
        snapshot = PolicySnapshot(
            {
                name: Group(name, Limit(Rates(to_milli(quota))))
                for name, quota in zip(names, quotas, strict=True)
            }
        )
        round_ns = round_s * NS_PER_S
        self.members = [
            self.world.add(
                BrokerSettings(Sender(f"broker-{place:04d}", place), round_ns=round_ns, **settings),
                snapshot,
            )
            for place in range(brokers)
        ]
        #: [group][broker] messages a second.
        self.wanted = [[0.0] * brokers for _ in quotas]
        self.admitted = [[0] * brokers for _ in quotas]
        for member in self.members:
            self.world.start(member)
        # Just after the rounds begin, so that a round holds the same number of them.
        self.world.at(1, self._tick)

    def run_rounds(self, count: int = 1) -> list[list[float]]:
        """Let rounds pass; messages a second that were admitted in the last, [group][broker]."""
        for _ in range(count):
            self.admitted = [[0] * len(row) for row in self.admitted]
            self.world.run_until(self.world.now + self.round_s * NS_PER_S)
        return [[count / self.round_s for count in row] for row in self.admitted]

    def shares(self) -> list[list[float]]:
        """Shares in force, [group][broker]; -1 where a group is not in use."""
        return [
            [self._share(member.brain.share(key)) for member in self.members] for key in self.keys
        ]

    def _share(self, rates: Rates | None) -> float:
        return -1.0 if rates is None or rates.messages is None else rates.messages / MILLI

    def _tick(self) -> None:
        for key, row, admitted in zip(self.keys, self.wanted, self.admitted, strict=True):
            for place, member in enumerate(self.members):
                messages = row[place] / self._ticks_per_s
                assert messages == int(messages)
                if messages and member.is_live:
                    request = Request(messages=int(messages), group=key.group, partial=True)
                    admitted[place] += self.world.acquire(member, request).messages
        self.world.at(self.world.now + NS_PER_S // self._ticks_per_s, self._tick)
