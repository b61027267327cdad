"""From a name to its levels: their order, the tables, and what a new snapshot keeps.

Not covered: what the levels decide together (test_limiter.py), where shares come from.
"""

from dataclasses import replace

import pytest

from rgd.core.bounds import BOUNDS, BucketBounds
from rgd.core.buckets.chain import Chain
from rgd.core.buckets.decision import Request
from rgd.core.errors import UnknownGroup
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Dimension, Kind, Nanos
from tests.support.limiter_alone import LimiterAlone, whole
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key, ms, rates

START = Nanos(0)
REQUEST = Request(namespace=NAMESPACE, topic=TOPIC, subscription="s")


def limit(units: float) -> LocalLimit:
    return LocalLimit(publish=rates(units), dispatch=rates(units))


def group(name: str = "gold", units: float = 100, *, shadow: bool = False) -> Group:
    return Group(name, Limit(rates(units), rates(units)), shadow=shadow)


def snapshot(*groups: Group, limits: Limits | None = None, **attached: str) -> PolicySnapshot:
    """Groups, attached to the tenant, namespace or topic."""
    names = {"tenant": "acme", "namespace": NAMESPACE, "topic": TOPIC}
    to = {sort: {names[sort]: name} for sort, name in attached.items()}
    attachments = Attachments(to.get("tenant", {}), to.get("namespace", {}), to.get("topic", {}))
    return PolicySnapshot({one.name: one for one in groups}, attachments, limits or Limits())


class Chains(LimiterAlone):
    """Finds chains by a request."""

    def of(self, request: Request, now: Nanos) -> Chain:
        name = (request.kind, request.group, request.namespace, request.topic, request.subscription)
        return self._chains.get(name) or self.chain_of(name, now)


def chains(first: PolicySnapshot, bounds: BucketBounds = BOUNDS.buckets) -> Chains:
    """All of the quota is this broker's share."""
    made = Chains(replace(BUCKETS, bounds=bounds), whole)
    made.set_policies(first, START)
    return made


def shown(chain: Chain) -> list[str]:
    return [level.group or level.level for level in chain.levels]


def test_the_levels_are_in_the_order_of_the_design() -> None:
    limits = Limits(limit(9), {TOPIC: limit(8)}, {(TOPIC, "s"): limit(7)})
    all_levels = snapshot(
        group("t"), group("n"), group("p"), limits=limits, tenant="t", namespace="n", topic="p"
    )
    chain = chains(all_levels).of(REQUEST, START)
    assert shown(chain) == ["broker", "p", "n", "t", "topic", "subscription"]
    assert [level.group for level in chain.groups] == ["p", "n", "t"]
    rates_of_limits = [level.share.messages for level in chain.levels if level.group is None]
    assert rates_of_limits == [9000, 8000, 7000]


def test_a_subscription_without_its_topic_names_nothing() -> None:
    limits = Limits(subscriptions={(TOPIC, "s"): limit(7)})
    made = chains(snapshot(limits=limits))
    assert shown(made.of(Request(namespace=NAMESPACE, subscription="s"), START)) == []
    assert shown(made.of(REQUEST, START)) == ["subscription"]


def test_a_limit_is_in_force_for_its_kind_alone() -> None:
    limits = Limits(topics={TOPIC: LocalLimit(publish=rates(5))})
    made = chains(snapshot(limits=limits))
    dispatch = Request(kind=Kind.DISPATCH, namespace=NAMESPACE, topic=TOPIC)
    assert shown(made.of(REQUEST, START)) == ["topic"]
    assert shown(made.of(dispatch, START)) == []


def test_the_two_kinds_of_a_group_have_buckets_of_their_own() -> None:
    made = chains(snapshot(group(), namespace="gold"))
    publish = made.of(REQUEST, START).groups[0]
    dispatch = made.of(Request(kind=Kind.DISPATCH, namespace=NAMESPACE), START).groups[0]
    assert (publish.key, dispatch.key) == (key(), key(kind=Kind.DISPATCH))
    assert list(made.states()) == [publish, dispatch]


def test_a_group_named_directly_is_charged_alone() -> None:
    made = chains(snapshot(group("gold"), group("trial"), namespace="trial"))
    assert shown(made.of(Request(group="gold", namespace=NAMESPACE), START)) == ["gold"]


def test_a_group_that_does_not_exist_is_an_error_every_time() -> None:
    made = chains(snapshot())
    for _ in range(2):
        with pytest.raises(UnknownGroup, match="'gold' does not exist"):
            made.of(Request(group="gold"), START)


def test_a_name_is_resolved_once_until_the_snapshot_changes() -> None:
    one = snapshot(group(), namespace="gold")
    made = chains(one)
    chain = made.of(REQUEST, START)
    assert made.of(REQUEST, ms(1)) is chain
    made.set_policies(one, ms(2))
    again = made.of(REQUEST, ms(3))
    assert again is not chain
    assert again.groups == chain.groups


def test_every_part_of_a_name_is_told_apart() -> None:
    made = chains(snapshot(group(), tenant="gold"))
    different = [
        REQUEST,
        Request(kind=Kind.DISPATCH, namespace=NAMESPACE, topic=TOPIC, subscription="s"),
        Request(namespace="acme/other", topic=TOPIC, subscription="s"),
        Request(namespace=NAMESPACE, topic=TOPIC + "2", subscription="s"),
        Request(namespace=NAMESPACE, topic=TOPIC, subscription="t"),
        Request(group="gold", namespace=NAMESPACE, topic=TOPIC, subscription="s"),
    ]
    found = [made.of(request, START) for request in different]
    assert len({id(chain) for chain in found}) == len(different)


def test_a_full_table_of_names_starts_afresh_and_keeps_the_buckets() -> None:
    limits = Limits(topics={TOPIC: limit(8)})
    made = chains(snapshot(group(), limits=limits, namespace="gold"), BucketBounds(chains_max=2))
    first = made.of(REQUEST, START)
    made.of(Request(namespace=NAMESPACE, topic="persistent://acme/orders/2"), START)
    assert made.of(REQUEST, START) is first
    made.of(Request(namespace=NAMESPACE, topic="persistent://acme/orders/3"), START)
    again = made.of(REQUEST, START)
    assert again is not first
    assert again.levels == first.levels


def test_a_namespace_that_moves_is_charged_to_the_new_group_alone() -> None:
    groups = group("gold"), group("trial")
    made = chains(snapshot(*groups, namespace="gold"))
    gold = made.of(REQUEST, START).groups[0]
    gold.take(30, 0)
    made.set_policies(snapshot(*groups, namespace="trial"), START)
    assert shown(made.of(REQUEST, START)) == ["trial"]
    # And back: what gold owed, it owes.
    made.set_policies(snapshot(*groups, namespace="gold"), START)
    assert made.of(REQUEST, START).groups == (gold,)
    assert gold.wait(1, 0, START) == (60, Dimension.MESSAGES)


def test_a_group_that_is_deleted_takes_its_buckets_along() -> None:
    made = chains(snapshot(group(), namespace="gold"))
    gold = made.of(REQUEST, START).groups[0]
    made.set_policies(snapshot(namespace="gold"), START)
    assert list(made.states()) == []
    assert shown(made.of(REQUEST, START)) == []
    made.set_policies(snapshot(group(), namespace="gold"), START)
    assert made.of(REQUEST, START).groups[0] is not gold


def test_a_new_quota_is_in_force_at_once_and_the_debt_stays() -> None:
    made = chains(snapshot(group(), namespace="gold"))
    gold = made.of(REQUEST, START).groups[0]
    gold.take(75, 0)
    made.set_policies(snapshot(group(units=50, shadow=True), namespace="gold"), START)
    assert gold.shadow
    assert (gold.quota, gold.share) == (rates(50), rates(50))
    assert gold.wait(1, 0, START) == (1020, Dimension.MESSAGES)


def test_a_limit_that_comes_or_goes_leaves_the_debt_of_the_others() -> None:
    without = snapshot(group(), namespace="gold")
    limited = snapshot(group(), limits=Limits(limit(10), {TOPIC: limit(10)}), namespace="gold")
    made = chains(without)
    gold = made.of(REQUEST, START).groups[0]
    gold.take(75, 0)
    made.set_policies(limited, START)
    broker, again, topic = made.of(REQUEST, START).levels
    assert again is gold
    broker.take(12, 0)
    topic.take(12, 0)
    changed = snapshot(group(), limits=Limits(limit(20), {TOPIC: limit(10)}), namespace="gold")
    made.set_policies(changed, START)
    assert made.of(REQUEST, START).levels == (broker, gold, topic)
    assert broker.wait(1, 0, START) == (525, Dimension.MESSAGES)
    assert topic.wait(1, 0, START) == (1050, Dimension.MESSAGES)
    made.set_policies(without, START)
    assert made.of(REQUEST, START).levels == (gold,)
    assert gold.wait(1, 0, START) == (510, Dimension.MESSAGES)


def test_a_limit_that_went_is_not_in_force_when_it_comes_back_with_other_rates() -> None:
    made = chains(snapshot(limits=Limits(topics={TOPIC: limit(10)})))
    made.of(REQUEST, START)
    made.set_policies(snapshot(), START)
    made.set_policies(snapshot(limits=Limits(topics={TOPIC: limit(30)})), START)
    assert made.of(REQUEST, START).levels[0].share == rates(30)


def test_the_depth_of_groups_changes_for_those_in_use_and_those_to_come() -> None:
    limits = Limits(topics={TOPIC: limit(100)})
    made = chains(snapshot(group("gold"), group("trial"), limits=limits, namespace="gold"))
    made.of(REQUEST, START)
    made.set_depth(0, START)
    gold, topic = made.of(REQUEST, START).levels
    (trial,) = made.of(Request(group="trial"), START).groups
    remaining = [level.remaining(Dimension.MESSAGES, START) for level in (gold, trial, topic)]
    # A limit of this broker alone is nobody else's business: it keeps its burst.
    assert remaining == [0, 0, 25]
    assert gold.share == trial.share == Rates(100_000)
