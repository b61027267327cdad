"""Which topics are read: those asked about and those known, for how long, and in which turn.

Not covered: how what was asked reaches here (test_policies_stock.py).
"""

import pytest

from rgd.app.policies import stock_topics
from rgd.app.policies.stock_topics import KEEP_POLLS, SeenTopics, in_turn
from rgd.core.buckets.decision import Name
from rgd.core.units import Kind

EU = "persistent://acme/orders/eu"
US = "persistent://acme/orders/us"


def asked(topic: str | None, subscription: str | None = None) -> Name:
    return (Kind.PUBLISH, None, "acme/orders", topic, subscription)


def test_what_was_asked_once_is_read_for_a_while() -> None:
    seen = SeenTopics()
    seen.choose([asked(EU, "billing"), asked(US, "billing")], [], 1000)
    for _ in range(KEEP_POLLS):
        chosen = seen.choose([asked(US)], [], 1000)[0]
        assert chosen == dict.fromkeys((EU, US), frozenset({"billing"}))
    assert seen.choose([asked(US)], [], 1000)[0] == {US: frozenset()}


def test_the_longest_unasked_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock_topics, "NAMES_MAX", 2)
    seen = SeenTopics()
    seen.choose([asked("a"), asked("b")], [], 1000)
    seen.choose([asked("a")], [], 1000)
    assert seen.choose([asked("c")], [], 1000)[0].keys() == {"a", "c"}


def test_topics_that_do_not_fit_take_turns() -> None:
    seen, names = SeenTopics(), [asked(name) for name in "abcde"]
    turns = ["".join(seen.choose(names, [], 8)[0]) for _ in range(5)]
    assert turns == ["ab", "cd", "ea", "bc", "de"]


def test_a_subscription_costs_a_call_and_one_topic_always_fits() -> None:
    wanted = {"a": frozenset("123456789"), "b": frozenset("1"), "c": frozenset[str]()}
    assert in_turn(wanted, 5, "").keys() == {"a"}
    assert in_turn(wanted, 9, "a").keys() == {"b", "c"}
    assert in_turn({}, 9, "c") == {}


def test_of_too_many_subscriptions_those_asked_about_last_are_read() -> None:
    seen = SeenTopics()
    assert seen.choose([asked(EU, name) for name in "abcd"], [], 6)[0] == {EU: frozenset("cd")}
    assert seen.choose([asked(EU, "a")], [], 6)[0] == {EU: frozenset("ad")}
