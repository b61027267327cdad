"""Which topic gets which part of a share, from its first request until it is idle or its group changes.

Not covered: that all parts together grant no more than the share (tests/property/test_topic_split.py).
"""

from dataclasses import replace

import pytest

from rgd.core.buckets.split import IDLE_ROUNDS
from rgd.core.units import Dimension, Pair
from tests.unit.core.buckets.split_house import EVEN, PROPORTIONAL, A, B, C, House, gold, parts_of
from tests.unit.core.values import key, ms


def test_by_default_all_topics_take_from_one_bucket() -> None:
    house = House(gold(None))
    assert (house.drain(A), house.drain(B)) == (250, 0)
    assert house.limiter.split_of(key("gold")) is None


def test_all_namespaces_of_a_tenant_take_from_one_bucket() -> None:
    house = House(replace(gold(None), name="house"))
    assert house.ask(A, 250).granted
    refused = house.ask(None, namespace="acme/other")
    assert (refused.granted, refused.group) == (False, "house")


def test_each_new_topic_has_its_even_part_at_once() -> None:
    house = House(gold(EVEN))
    for count, topic in enumerate([A, B, C, None], start=1):
        house.ask(topic)
        assert house.parts() == pytest.approx([1000 / count] * count, abs=0.001)


def test_a_topic_that_wants_everything_leaves_the_others_their_parts() -> None:
    house = House(gold(EVEN))
    for topic in (A, B):
        house.drain(topic)
    house.pass_ms(100)
    assert (house.drain(A), house.drain(B)) == (50, 50)


def test_topics_that_come_one_after_another_get_the_depth_once() -> None:
    house = House(gold(EVEN))
    got = [house.drain(f"{A}-{number}") for number in range(20)]
    assert got == [250] + [0] * 19


def test_a_new_topics_bucket_lacks_what_the_whole_lacks() -> None:
    house = House(gold(EVEN))
    house.ask(A, 0)
    house.pass_ms(1000)
    house.ask(A, 100)
    # Half the depth is 125, and 100 are missing of it.
    assert house.drain(B) == 25


def test_a_topic_in_debt_keeps_its_part_until_it_is_paid() -> None:
    house = House(gold(EVEN))
    house.ask(B, 0)
    house.ask(A, 3000)
    for _ in range(5):
        house.round(B)
        assert house.parts() == [500, 500]
    house.round(B)
    assert house.parts() == [1000]


def test_one_that_comes_back_is_new() -> None:
    house = House(gold(EVEN))
    house.round(A, B)
    for _ in range(IDLE_ROUNDS):
        house.round(A)
    house.ask(B)
    assert house.parts() == [500, 500]
    assert house.drain(B) > 0


def test_parts_follow_what_was_used_above_a_floor() -> None:
    house = House(gold(PROPORTIONAL))
    for _ in range(3):
        house.ask(A, 30)
        house.round(B, messages=10)
    # 1 % evenly, and 99 % as 3 to 1.
    assert house.parts() == [5 + 742.5, 5 + 247.5]


def test_even_becomes_proportional_with_tokens_and_debt() -> None:
    house = House(gold(EVEN))
    house.ask(B, 0)
    house.ask(A, 1000)
    before = [part.remaining(Dimension.MESSAGES, ms(0)) for part in parts_of(house.split(), 0)]
    house.put(gold(PROPORTIONAL))
    after = [part.remaining(Dimension.MESSAGES, ms(0)) for part in parts_of(house.split(), 0)]
    assert (house.split().mode, after) == (PROPORTIONAL, before)
    assert not house.ask(A).granted


def test_what_is_held_back_counts_as_wanted_once_a_round() -> None:
    house = House(gold(PROPORTIONAL))
    for _ in range(2):
        house.ask(A, 10, held=Pair(30, 0))
        house.round(B, messages=40)
    assert house.parts() == [500, 500]
    for _ in range(2):
        house.ask(A, 10)
        house.round(B, messages=10)
    assert house.parts() == [500, 500]


def test_a_shadow_counts_on_the_group_and_refuses_nothing() -> None:
    house = House(gold(EVEN, 10))
    house.ask(A, 0)
    house.put(gold(EVEN, 10, shadow=True))
    for _ in range(10):
        assert house.ask(A).granted
    state = house.limiter.state(key("gold"))
    assert state is not None
    assert state.shadow_refused == Pair(8, 0)


def test_an_unmet_want_counts_for_the_group_that_refused() -> None:
    house = House(gold(PROPORTIONAL, 100), replace(gold(PROPORTIONAL), name="house"))
    for _ in range(3):
        for _ in range(500):
            house.ask(A)
        house.round(B, messages=25)
    of_house = [part.usage.messages for part in parts_of(house.split("house"), house.now)]
    of_gold = [part.usage.messages for part in parts_of(house.split("gold"), house.now)]
    # As much as the house would have let through: its depth in each round, and it let 25 through.
    assert of_gold[0] == 2 * 250
    assert of_house[0] < 300
