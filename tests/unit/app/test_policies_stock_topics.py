"""Which topics are read: those asked about and those known, for how long, and in which turn.

Names come as the limiter has them: all since the last change of policies, in the order of their first request.
Not covered: how what was asked reaches here (test_policies_stock.py).
"""

import pytest

from rgd.app.policies import stock_topics
from rgd.app.policies.stock_topics import KEEP_POLLS, SeenTopics
from rgd.core.buckets.decision import Name
from rgd.core.units import Kind

EU = "persistent://acme/orders/eu"
US = "persistent://acme/orders/us"


def asked(topic: str | None, subscription: str | None = None) -> Name:
    return (Kind.PUBLISH, None, "acme/orders", topic, subscription)


def test_what_was_asked_once_is_read_for_a_while_after_a_change_of_policies() -> None:
    seen, names = SeenTopics(), [asked(EU, "billing"), asked(US, "billing")]
    for poll in range(3 * KEEP_POLLS):
        if poll == 2 * KEEP_POLLS:
            names = [asked(US)]
        chosen = seen.choose(names, [], 1000)[0]
        assert chosen == dict.fromkeys((EU, US), frozenset({"billing"}))
    assert seen.choose(names, [], 1000)[0] == {US: frozenset()}


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
    seen, names = SeenTopics(), [*(asked("a", one) for one in "123456789"), asked("b", "1")]
    turns = [seen.choose(names, ["c"], 9) for _ in range(3)]
    parts = [{"a": "12345"}, {"a": "6789"}, {"b": "1", "c": ""}]
    assert turns == [({name: frozenset(part[name]) for name in part}, 4) for part in parts]
    assert seen.choose(names, ["c"], 4) == ({"a": frozenset("1")}, 11)
    assert SeenTopics().choose([], [], 9) == ({}, 0)


def test_too_many_subscriptions_of_a_topic_take_turns() -> None:
    seen, names = SeenTopics(), [asked(EU, name) for name in "abcde"]
    turns = []
    for new in "fghijkl":
        # Whatever is asked about at last, and however often.
        names.append(asked(EU, new))
        turns.append("".join(sorted(seen.choose(names, [], 6)[0][EU])))
    assert turns == ["ab", "cd", "ef", "gh", "ij", "k", "ab"]
