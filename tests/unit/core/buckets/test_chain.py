"""From a name to its levels: their order, the tables, and what a new snapshot keeps.

Not covered: what the levels decide together (test_limiter.py), where shares come from.
"""

from dataclasses import replace

from rgd.core.bounds import BOUNDS, BucketBounds
from rgd.core.buckets.chain import Chain
from rgd.core.buckets.decision import Request
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Nanos
from tests.support.limiter_alone import LimiterAlone, whole
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, rates

START = Nanos(0)
REQUEST = Request(namespace=NAMESPACE, topic=TOPIC, subscription="s")
GOLD = Group("gold", Limit(rates(100), rates(100)))


def limit(units: float) -> LocalLimit:
    return LocalLimit(publish=rates(units), dispatch=rates(units))


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


def test_a_full_table_of_names_starts_afresh_and_keeps_the_buckets() -> None:
    limits = Limits(topics={TOPIC: limit(8)})
    made = chains(snapshot(GOLD, limits=limits, namespace="gold"), BucketBounds(chains_max=2))
    first = made.of(REQUEST, START)
    made.of(Request(namespace=NAMESPACE, topic="persistent://acme/orders/2"), START)
    assert made.of(REQUEST, START) is first
    made.of(Request(namespace=NAMESPACE, topic="persistent://acme/orders/3"), START)
    again = made.of(REQUEST, START)
    assert again is not first
    assert again.levels == first.levels


def test_a_limit_that_went_is_not_in_force_when_it_comes_back_with_other_rates() -> None:
    made = chains(snapshot(limits=Limits(topics={TOPIC: limit(10)})))
    made.of(REQUEST, START)
    made.set_policies(snapshot(), START)
    made.set_policies(snapshot(limits=Limits(topics={TOPIC: limit(30)})), START)
    assert made.of(REQUEST, START).levels[0].share == rates(30)
