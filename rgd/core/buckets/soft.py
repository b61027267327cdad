"""The soft limit of a group: a part of its share beyond which callers are told, and granted all the same.

Law: it is charged with what it has and refuses nothing. Work beyond it is granted with `over`, as far as it is beyond:
at a use of twice the soft limit about half of the requests are told. So callers can degrade in
proportion, before the group refuses anything.

It is a shadow level beside its group, at `soft_ppm` of the group's share.
"""

from typing_extensions import override

from rgd.core.buckets.decision import Decision, Level
from rgd.core.buckets.level import BucketSettings, LevelState
from rgd.core.policies.model import Rate, Rates
from rgd.core.shares.model import PPM
from rgd.core.units import Nanos


class SoftState(LevelState):
    """The buckets of one soft limit."""

    __slots__ = ("is_over", "ppm")

    def __init__(self, settings: BucketSettings, group: str | None, ppm: int) -> None:
        super().__init__(Level.RESOURCE_GROUP, settings, group)
        self.shadow = True
        self.ppm = ppm
        #: Whether the last charge was beyond it.
        self.is_over = False

    def follow(self, share: Rates, burst_ns: int, now: Nanos) -> None:
        """Keep to this part of the group's share, at its depth in time."""
        self.burst_ns = burst_ns
        part = Rates(self._part(share.messages), self._part(share.bytes))
        self.set_rates(part, part, now)

    @override
    def charge_shadow(self, messages: int, size: int, now: Nanos) -> None:
        before = self.shadow_refused
        super().charge_shadow(messages, size, now)
        self.is_over = self.shadow_refused is not before

    def _part(self, rate: Rate) -> Rate:
        return None if rate is None else rate * self.ppm // PPM


def marked_over(decision: Decision, softs: tuple[SoftState, ...]) -> Decision:
    """A grant that was just charged, marked with the first soft limit that it is beyond, if any."""
    for soft in softs:
        if soft.is_over:
            return decision._replace(over=True, group=decision.group or soft.group)
    return decision
