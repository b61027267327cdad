"""Law: two daemons beside two brokers never report one topic both, whatever moves when.

Both poll as often as the other, at any distance, and their polls keep up; ownership is Pulsar's, so a
topic has one owner or none at each moment.
"""

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.app.polled_house import POLL_S, TOPICS, House, World

#: When, which topic, and to which broker (None: it is unloaded).
MOVES = st.lists(
    st.tuples(st.integers(1, 8 * POLL_S), st.sampled_from(TOPICS), st.sampled_from([None, 0, 1])),
    max_size=12,
)
#: Polls after the last move until everything is known: it is seen, then settled, then read.
SETTLED_POLLS = 3


@example(first=[0] * 5, moves=[(1, TOPICS[3], 1)], offset_s=1).via(
    "a daemon that starts as a topic comes"
)
@example(first=[0] * 5, moves=[(70, TOPICS[3], 1)], offset_s=20).via("the new owner polls first")
@given(
    first=st.lists(st.sampled_from([None, 0, 1]), min_size=len(TOPICS), max_size=len(TOPICS)),
    moves=MOVES,
    offset_s=st.integers(0, POLL_S - 1),
)
def test_no_topic_is_reported_by_two(
    first: list[int | None], moves: list[tuple[int, str, int | None]], offset_s: int
) -> None:
    asyncio.run(_run(dict(zip(TOPICS, first, strict=True)), sorted(moves, key=_at), offset_s))


def _at(move: tuple[int, str, int | None]) -> int:
    return move[0]


async def _run(
    owners: dict[str, int | None], moves: list[tuple[int, str, int | None]], offset_s: int
) -> None:
    houses = [House(World([])), House(World([]))]
    left = list(moves)
    end_s = (moves[-1][0] if moves else 0) + (SETTLED_POLLS + 1) * POLL_S
    polls = [(at, 0) for at in range(0, end_s, POLL_S)]
    polls += [(at + offset_s, 1) for at in range(0, end_s, POLL_S)]
    for now_s, which in sorted(polls):
        while left and left[0][0] <= now_s:
            _, topic, owner = left.pop(0)
            owners[topic] = owner
        house = houses[which]
        house.world.topics = sorted(topic for topic, owner in owners.items() if owner == which)
        # `House.poll` goes on by the time between polls.
        house.now_s = now_s - POLL_S
        known = set(await house.poll())
        assert known <= set(house.world.topics)
        assert not known & set(houses[1 - which].store.names())
    for which, house in enumerate(houses):
        mine = {topic for topic, owner in owners.items() if owner == which}
        assert set(house.store.names()) == mine
