"""A broker whose shares are divided over topics: by its own default, weighed anew every round.

Not covered: which topic gets what (tests/unit/core/buckets/test_split.py).
"""

import pytest

from rgd.core.broker.events import PoliciesChanged
from rgd.core.buckets.decision import Request
from rgd.core.policies.model import Group, Limit, TopicSplit
from rgd.core.policies.snapshot import PolicySnapshot
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import Desk
from tests.unit.core.buckets.split_house import parts_of
from tests.unit.core.values import key, ms, rates

#: Messages that each topic asks for in a round.
ASKED = {"persistent://acme/orders/a": 6, "persistent://acme/orders/b": 2}


def ask(desk: Desk, at: float) -> None:
    for topic, messages in ASKED.items():
        desk.broker.limiter.acquire(Request(messages=messages, group="gold", topic=topic), ms(at))


def parts(desk: Desk, at: float) -> list[float]:
    split = desk.broker.limiter.split_of(key())
    assert split is not None
    return [(part.share.messages or 0) / 1000 for part in parts_of(split, ms(at))]


def test_the_daemons_default_divides_and_a_round_weighs_anew(seat: Seat) -> None:
    desk = seat(topic_split=TopicSplit.PROPORTIONAL)
    desk.go_live()
    desk.run(2005, 2010)
    ask(desk, 2010)
    assert parts(desk, 2010) == [50, 50]
    desk.run(2010, 3001)
    # 1 % evenly, the rest as 3 to 1.
    assert parts(desk, 3001) == pytest.approx([0.5 + 74.25, 0.5 + 24.75])


def test_idle_topics_go_after_two_whole_rounds(seat: Seat) -> None:
    desk = seat(topic_split=TopicSplit.EVEN)
    desk.go_live()
    desk.run(2005, 2010)
    ask(desk, 2010)
    desk.run(2010, 4900)
    assert parts(desk, 4900) == [50, 50]
    desk.run(4900, 5001)
    assert parts(desk, 5001) == []


def test_a_group_says_otherwise(seat: Seat) -> None:
    desk = seat(topic_split=TopicSplit.EVEN)
    desk.go_live()
    shared = Group("gold", Limit(rates(100)), topic_split=TopicSplit.SHARED)
    desk.handle(PoliciesChanged(ms(2010), PolicySnapshot({"gold": shared})))
    ask(desk, 2020)
    assert desk.broker.limiter.split_of(key()) is None
