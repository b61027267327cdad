"""What becomes of parts when their group changes: its share, mode, depth, namespace, existence.

Not covered: what the parts are (test_split.py), and that all together stay within the share
(tests/property/test_topic_split.py).
"""

from dataclasses import replace

from rgd.core.units import Dimension, Nanos
from tests.unit.core.buckets.split_house import (
    EVEN,
    PROPORTIONAL,
    SHARED,
    START,
    A,
    B,
    C,
    House,
    gold,
)
from tests.unit.core.values import key, ms, rates


class TestChanges:
    def test_another_share_is_divided_at_once(self) -> None:
        house = House(gold(EVEN))
        for topic in (A, B):
            house.ask(topic)
        house.limiter.set_share(key("gold"), rates(10), Nanos(house.now))
        assert house.parts() == [5, 5]
        # What is above the new depth goes.
        assert (house.drain(A), house.drain(B)) == (1, 1)

    def test_a_raise_gives_no_tokens(self) -> None:
        house = House(gold(EVEN, 10))
        for topic in (A, B):
            house.drain(topic)
        house.limiter.set_share(key("gold"), rates(1000), Nanos(house.now))
        assert (house.drain(A), house.drain(B)) == (0, 0)

    def test_even_becomes_proportional_with_tokens_and_debt(self) -> None:
        house = House(gold(EVEN))
        house.ask(B, 0)
        house.ask(A, 1000)
        before = [part.remaining(Dimension.MESSAGES, START) for part in house.split().parts(START)]
        house.put(gold(PROPORTIONAL))
        after = [part.remaining(Dimension.MESSAGES, START) for part in house.split().parts(START)]
        assert (house.split().mode, after) == (PROPORTIONAL, before)
        assert not house.ask(A).granted

    def test_a_mode_that_changes_while_topics_are_weighed_is_laid_out_after_them(self) -> None:
        house = House(gold(PROPORTIONAL))
        for _ in range(2):
            house.ask(A, 30)
            house.round(B)
        assert house.parts()[0] > house.parts()[1]
        split = house.split()
        split.end_round()
        split.weigh(1, Nanos(house.now))
        split.set_mode(EVEN)
        while not split.is_weighed:
            split.weigh(1, Nanos(house.now))
        assert house.parts() == [500, 500]

    def test_a_divided_share_that_becomes_shared_keeps_what_was_taken(self) -> None:
        house = House(gold(EVEN))
        house.ask(A, 100)
        house.ask(B, 20)
        house.put(gold(SHARED))
        assert house.drain(C) == 130

    def test_a_shared_one_is_divided_with_the_tokens_it_has(self) -> None:
        house = House(gold(SHARED))
        house.ask(A, 100)
        house.put(gold(EVEN))
        assert house.drain(B) == 150

    def test_a_shared_one_in_debt_pays_it_first(self) -> None:
        house = House(gold(SHARED))
        house.ask(A, 1750)
        house.put(gold(EVEN))
        house.round(B)
        assert house.limiter.split_of(key("gold")) is None
        house.pass_ms(500)
        house.limiter.end_round(Nanos(house.now))
        assert house.ask(B, 0).granted
        assert house.parts() == [1000]
        assert house.drain(B) == 0

    def test_a_debt_that_is_to_be_paid_is_forgotten_with_its_group(self) -> None:
        house = House(gold(SHARED))
        house.ask(A, 1750)
        house.put(gold(EVEN))
        house.put(replace(gold(EVEN), name="other"), namespace="other")
        house.round(A)
        assert house.limiter.state(key("gold")) is None

    def test_shared_again_before_the_debt_was_paid_stays_shared(self) -> None:
        house = House(gold(SHARED))
        house.ask(A, 500)
        house.put(gold(EVEN))
        house.put(gold(SHARED))
        house.round()
        house.ask(A)
        assert house.limiter.split_of(key("gold")) is None

    def test_a_deleted_groups_parts_go_with_it(self) -> None:
        house = House(gold(EVEN))
        house.drain(A)
        house.put(replace(gold(EVEN), name="other"), namespace="other")
        assert house.limiter.split_of(key("gold")) is None
        house.put(gold(EVEN))
        assert house.drain(A) == 250

    def test_a_namespace_that_moves_is_charged_in_one_group_alone(self) -> None:
        groups = (gold(EVEN), replace(gold(EVEN), name="trial"))
        house = House(*groups)
        house.ask(A, 100)
        house.put(*groups, namespace="trial")
        assert house.drain(A) == 250
        house.put(*groups, namespace="gold")
        assert house.drain(A) == 150

    def test_after_another_burst_a_share_is_divided_again(self) -> None:
        house = House(gold(EVEN))
        for topic in (A, B):
            house.ask(topic, 0)
        house.limiter.set_group_burst(ms(100), START)
        assert (house.drain(A), house.drain(B)) == (100, 0)
        assert house.parts() == [500, 500]
        house.limiter.set_group_burst(ms(1000), START)
        assert (house.drain(A), house.drain(B)) == (0, 0)

    def test_a_share_without_depth_grants_one_request_and_not_one_a_topic(self) -> None:
        house = House()
        house.limiter.set_group_burst(0, START)
        house.put(gold(EVEN))
        assert (house.drain(A), house.drain(B)) == (1, 0)
        house.limiter.set_group_burst(ms(250), START)
        house.round()
        assert (house.drain(A), house.drain(B)) == (250, 0)
        assert house.parts() == [500, 500]
