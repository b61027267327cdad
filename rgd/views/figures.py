"""The figures of each group in use, for metrics.

Law: the figures of one group are of one time. Those of different groups may be of different times,
because they are read in slices. A step of the iterator reads at most `SLICE_GROUPS` groups.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from rgd.core.broker.broker import Broker
from rgd.core.buckets.decision import Level
from rgd.core.buckets.level import GroupState
from rgd.core.policies.model import GroupKey, Rates
from rgd.core.units import Dimension, Pair

#: Most groups whose advertised demand is looked up together.
SLICE_GROUPS: Final = 32


class GroupFigures(NamedTuple):
    """The figures of one group and kind; rates in Milli per second, counts since the start."""

    key: GroupKey
    quota: Rates
    share: Rates
    admitted: Pair
    #: What was given back of it.
    returned: Pair
    #: The advertised demand, (messages, bytes).
    wanted: tuple[int, int]
    #: Refused work in whole units since the start, by the level that refused and the dimension.
    refused: list[tuple[tuple[Level, Dimension], int]]
    #: The work that a shadow group would have refused; None for other groups.
    shadow_refused: Pair | None
    #: What was granted beyond its soft limit; None: it has none.
    over: Pair | None


def group_figures(broker: Broker) -> Iterator[GroupFigures]:
    """The figures of every group and kind that was in use at the call."""
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
        state.counters.returned,
        wanted,
        list(state.refused.items()),
        state.shadow_refused if state.shadow else None,
        None if state.soft is None else state.soft.shadow_refused,
    )


def known_subscriptions(broker: Broker) -> Iterator[tuple[str, str]]:
    """Topics and subscriptions that have a limit, a backlog or a reader here; some come more than once."""
    yield from broker.limiter.snapshot.limits.subscriptions
    yield from list(broker.limiter.throttled.read)
    for topic in broker.backlogs.names():
        if (state := broker.backlogs.get(topic)) is not None:
            for subscription, _ in state.messages():
                yield topic, subscription
