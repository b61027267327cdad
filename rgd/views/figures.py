"""The figures of each group in use, for metrics.

Law: the figures of one group are of one time. Those of different groups may be of different times,
because they are read in slices. A step of the iterator reads at most `SLICE_GROUPS` groups.
"""

from collections.abc import Iterator
from typing import Final

from rgd.core.broker.broker import Broker
from rgd.core.gate import looks

#: Most groups that are read together.
SLICE_GROUPS: Final = 12


def group_figures(broker: Broker) -> Iterator[tuple[looks.GroupReading, tuple[int, int]]]:
    """The figures of every group and kind that was in use at the call, and its advertised demand (messages, bytes)."""
    for part in broker.sharing.keys_in_use(SLICE_GROUPS):
        readings = broker.gate.ask(looks.groups, part)
        wanted = broker.rounds.advertised_demand(part)
        yield from ((one, of) for one, of in zip(readings, wanted, strict=True) if one is not None)


def known_subscriptions(broker: Broker) -> Iterator[tuple[str, str]]:
    """Topics and subscriptions that have a limit, a backlog or a reader here; some come more than once."""
    yield from broker.sharing.snapshot.limits.subscriptions
    yield from looks.listed(broker.gate, looks.subscriptions_read)
    for topic in broker.backlogs.names():
        if (state := broker.backlogs.get(topic)) is not None:
            for subscription, _ in state.messages():
                yield topic, subscription
