"""What is counted of each group in use, for metrics.

Law: the figures of a group are of one moment; those of different groups may be of different moments,
for whoever reads them does so in slices. A step of the iterator looks at no more than `SLICE_GROUPS`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from rgd.core.broker.broker import Broker
from rgd.core.buckets.decision import Level
from rgd.core.buckets.level import GroupKey, GroupState
from rgd.core.policies.model import Rates
from rgd.core.units import Dimension, Pair

#: Groups of which it is looked up together what the peers know.
SLICE_GROUPS: Final = 32


class GroupFigures(NamedTuple):
    """One group and kind; rates in Milli per second, counts since the start."""

    key: GroupKey
    quota: Rates
    share: Rates
    admitted: Pair
    #: As the peers know it.
    wanted: tuple[int, int]
    #: By the level and the dimension that was short.
    refused: list[tuple[tuple[Level, Dimension], int]]
    #: What a shadow group would have refused; None: it is none.
    shadow_refused: Pair | None


def group_figures(broker: Broker) -> Iterator[GroupFigures]:
    """Every group and kind that was in use when this was called."""
    states = broker.limiter.states()
    while part := list(islice(states, SLICE_GROUPS)):
        wanted = broker.rounds.advertised_demand([state.key for state in part])
        yield from map(_figures, part, wanted)


def _figures(state: GroupState, wanted: tuple[int, int]) -> GroupFigures:
    return GroupFigures(
        state.key,
        state.quota,
        state.share,
        state.counters.admitted,
        wanted,
        list(state.refused.items()),
        state.shadow_refused if state.shadow else None,
    )
