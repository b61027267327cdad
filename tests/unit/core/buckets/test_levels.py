"""Levels under a new snapshot: told at once or when they are asked for, in slices, and which ones go.

Not covered: which levels apply to a name (test_chain.py), a broker's share under a new snapshot
(tests/unit/core/broker/test_sharing.py), counts under moves (tests/property/test_moves.py).
"""

from dataclasses import replace
from typing import Protocol

import pytest
from typing_extensions import override

from rgd.core.bounds import BOUNDS, BucketBounds
from rgd.core.buckets.decision import Decision, Level, Request
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import (
    UNLIMITED,
    Attachments,
    Group,
    Limit,
    Limits,
    LocalLimit,
    Rates,
    TopicSplit,
)
from rgd.core.policies.snapshot import Changes, PolicySnapshot, changes_between
from rgd.core.units import Kind, Nanos
from tests.support.limiter_alone import LimiterAlone, whole
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key, ms, rates

PARTITION = f"{TOPIC}-partition-0"


def snapshot_of(*groups: Group, limits: Limits | None = None, **attached: str) -> PolicySnapshot:
    namespaces = {f"acme/{name}": group for name, group in attached.items()}
    return PolicySnapshot(
        {one.name: one for one in groups}, Attachments(namespaces=namespaces), limits or Limits()
    )


def gold(units: float | None, name: str = "gold", *, blocked: bool = False) -> Group:
    return Group(name, Limit(rates(units)), blocked=blocked)


class Following(LimiterAlone):
    """A limiter that is told which groups changed, at most so many; of more it has the shares later."""

    def __init__(self, changes_max: int, bounds: BucketBounds) -> None:
        super().__init__(replace(BUCKETS, bounds=bounds), whole)
        self._changes_max = changes_max

    @override
    def follow(self, now: Nanos, *, is_late: bool = False) -> None:
        if self._changes_max or is_late:
            super().follow(now)

    @override
    def set_policies(
        self, snapshot: PolicySnapshot, now: Nanos, changes: Changes | None = None
    ) -> None:
        changes = changes or changes_between(self.snapshot, snapshot, self._changes_max)
        super().set_policies(snapshot, now, changes)


class LimiterOf(Protocol):
    """Makes a limiter."""

    def __call__(
        self, snapshot: PolicySnapshot, bounds: BucketBounds = BOUNDS.buckets
    ) -> Limiter: ...


@pytest.fixture(params=[32, 0], ids=["told at once", "told later"])
def limiter_of(request: pytest.FixtureRequest) -> LimiterOf:
    changes_max: int = request.param

    def make(snapshot: PolicySnapshot, bounds: BucketBounds = BOUNDS.buckets) -> Limiter:
        made = Following(changes_max, bounds)
        made.set_policies(snapshot, ms(0))
        return made

    return make


def ask(limiter: Limiter, at: float, messages: int = 1, **more: object) -> Decision:
    request = Request(messages=messages, namespace=NAMESPACE, topic=TOPIC)._replace(**more)  # type: ignore[arg-type]
    answer = limiter.acquire(request, ms(at))
    assert isinstance(answer, Decision)
    return answer


def work(limiter: Limiter, at: float) -> int:
    """Until nothing is left; how many slices it took."""
    slices = 0
    if isinstance(limiter, Following):
        limiter.follow(ms(at), is_late=True)
    while limiter.is_behind:
        limiter.work(ms(at))
        slices += 1
    return slices


def limit_by(limiter_of: LimiterOf, **limits: object) -> str | None:
    """Which level refusals, where one message is all that a limit grants at once."""
    limiter = limiter_of(PolicySnapshot(limits=Limits(**limits)))  # type: ignore[arg-type]
    assert ask(limiter, 0, topic=PARTITION, subscription="s").granted
    return ask(limiter, 0, topic=PARTITION, subscription="s").limited_by


class TestGroups:
    def test_a_block_is_in_force_for_the_next_request(self, limiter_of: LimiterOf) -> None:
        limiter = limiter_of(snapshot_of(gold(100), orders="gold"))
        assert ask(limiter, 0).granted
        limiter.set_policies(snapshot_of(gold(100, blocked=True), orders="gold"), ms(0))
        assert not ask(limiter, 0).granted
        limiter.set_policies(snapshot_of(gold(100), orders="gold"), ms(0))
        work(limiter, 0)
        # There is no free burst: what was there went.
        assert not ask(limiter, 0).granted
        assert ask(limiter, 10).granted

    def test_a_debt_is_paid_at_the_rate_in_force_and_not_at_that_of_the_asking(
        self, limiter_of: LimiterOf
    ) -> None:
        limiter = limiter_of(snapshot_of(gold(100), orders="gold"))
        assert ask(limiter, 0, 75).granted
        limiter.set_policies(snapshot_of(gold(10), orders="gold"), ms(100))
        # 25 left, 50 owed; 10 of it were paid at 100/s, the rest is at 10/s.
        assert ask(limiter, 200).retry_after_ms == 4000

    def test_a_rate_that_was_in_force_in_between_gave_no_more_than_its_own(
        self, limiter_of: LimiterOf
    ) -> None:
        limiter = limiter_of(snapshot_of(gold(100), orders="gold"))
        assert ask(limiter, 0, 75).granted
        limiter.set_policies(snapshot_of(gold(1), orders="gold"), ms(100))
        limiter.set_policies(snapshot_of(gold(100), orders="gold"), ms(1100))
        answer = ask(limiter, 1100)
        assert not answer.granted
        # 40 were owed and at most one of them was paid in the second at 1/s; or 50, where the change was missed.
        assert 390 <= answer.retry_after_ms <= 510

    @pytest.mark.parametrize("units", [50, 200])
    def test_until_its_share_comes_a_group_has_the_share_before_lowered_as_its_quota(
        self, units: float
    ) -> None:
        limiter = Following(0, BOUNDS.buckets)
        limiter.set_policies(snapshot_of(gold(100), gold(100, "trial"), gold(None, "free")), ms(0))
        for name in ("gold", "free"):
            ask(limiter, 0, group=name)
        limiter.set_share(key(), rates(40), ms(0))
        limiter.live_brokers = 4
        changed = (gold(units), gold(units, "trial"), gold(units, "free"))
        limiter.set_policies(snapshot_of(*changed), ms(0))
        for name in ("gold", "trial", "free"):
            ask(limiter, 0, group=name)
        shares = {state.key.group: state.share for state in limiter.states()}
        lowered = rates(min(40, 0.4 * units))
        assert shares == {"gold": lowered, "trial": rates(units), "free": rates(units / 4)}

    def test_while_nothing_is_limited_only_a_block_is_in_force_before_a_share_comes(self) -> None:
        limiter = Following(0, BOUNDS.buckets)
        limiter.set_policies(snapshot_of(gold(100)), ms(0))
        ask(limiter, 0, group="gold")
        limiter.set_share(key(), UNLIMITED, ms(0))
        limiter.set_policies(snapshot_of(gold(50)), ms(0))
        assert ask(limiter, 0, 400, group="gold").granted
        limiter.set_policies(snapshot_of(gold(50, blocked=True)), ms(0))
        assert not ask(limiter, 0, group="gold").granted

    def test_groups_that_are_gone_are_gone_at_once_and_let_go_when_the_plane_says_so(
        self, limiter_of: LimiterOf
    ) -> None:
        names = [f"g{number}" for number in range(300)]
        limiter = limiter_of(snapshot_of(*(gold(100, name) for name in names)))
        for name in names:
            ask(limiter, 0, group=name)
        limiter.set_policies(snapshot_of(gold(100, "g7")), ms(0))
        assert [state.key for state in limiter.states()] == [key("g7")]
        assert limiter.state(key("g8")) is None
        work(limiter, 0)
        limiter.set_policies(snapshot_of(*(gold(100, name) for name in names)), ms(0))
        ask(limiter, 0, group="g8")
        assert [state.key.group for state in limiter.states()] == ["g7", "g8"]

    def test_a_share_that_comes_before_the_policy_was_heard_of_brings_it_along(
        self, limiter_of: LimiterOf
    ) -> None:
        limiter = limiter_of(snapshot_of(gold(100), orders="gold"))
        ask(limiter, 0)
        limiter.set_policies(snapshot_of(gold(40), orders="gold"), ms(0))
        limiter.set_share(key(), rates(20), ms(0))
        state = limiter.state(key())
        assert state is not None
        assert (state.quota, state.share) == (rates(40), rates(20))

    def test_a_group_becomes_divided_with_the_next_request(self, limiter_of: LimiterOf) -> None:
        limiter = limiter_of(snapshot_of(gold(100), orders="gold"))
        ask(limiter, 0)
        divided = Group("gold", Limit(rates(100)), topic_split=TopicSplit.EVEN)
        limiter.set_policies(snapshot_of(divided, orders="gold"), ms(0))
        ask(limiter, 0)
        assert limiter.split_of(key()) is not None


class TestLimits:
    def test_the_narrowest_place_says_which_limit_a_topic_has(self, limiter_of: LimiterOf) -> None:
        few = LocalLimit(publish=rates(1), dispatch=rates(1))
        many = LocalLimit(publish=UNLIMITED)
        assert limit_by(limiter_of, namespaces={NAMESPACE: few}) == Level.TOPIC
        assert limit_by(limiter_of, namespaces={NAMESPACE: few}, topics={TOPIC: many}) is None
        assert limit_by(limiter_of, topics={TOPIC: few, PARTITION: many}) is None
        assert limit_by(limiter_of, topics={TOPIC: many, PARTITION: few}) == Level.TOPIC
        assert limit_by(limiter_of, namespace_subscriptions={NAMESPACE: few}) == Level.SUBSCRIPTION
        subscriptions = {(TOPIC, "s"): many}
        of_topic = {PARTITION: few}
        assert limit_by(limiter_of, topic_subscriptions=of_topic) == Level.SUBSCRIPTION
        assert (
            limit_by(limiter_of, topic_subscriptions=of_topic, subscriptions=subscriptions) is None
        )

    def test_each_topic_has_a_bucket_of_its_own_under_a_namespaces_limit(
        self, limiter_of: LimiterOf
    ) -> None:
        limits = Limits(namespaces={NAMESPACE: LocalLimit(publish=rates(100))})
        limiter = limiter_of(PolicySnapshot(limits=limits))
        assert ask(limiter, 0, 25).granted
        assert not ask(limiter, 0).granted
        assert ask(limiter, 0, 25, topic=f"{TOPIC}2").granted
        assert ask(limiter, 0, 25, topic=PARTITION).granted

    def test_a_limit_changes_with_debt_as_of_the_moment_of_the_change(
        self, limiter_of: LimiterOf
    ) -> None:
        def limits(units: float) -> PolicySnapshot:
            return PolicySnapshot(limits=Limits(namespaces={NAMESPACE: LocalLimit(rates(units))}))

        limiter = limiter_of(limits(100))
        assert ask(limiter, 0, 75).granted
        limiter.set_policies(limits(10), ms(100))
        assert ask(limiter, 200).retry_after_ms == 4000

    @pytest.mark.parametrize("is_set_again", [False, True])
    def test_a_removed_limit_that_a_request_noticed_first_is_no_work(
        self, limiter_of: LimiterOf, *, is_set_again: bool
    ) -> None:
        limited = PolicySnapshot(
            limits=Limits(namespaces={NAMESPACE: LocalLimit(publish=rates(100))})
        )
        limiter = limiter_of(limited, BucketBounds(limits_per_new=0))
        assert ask(limiter, 0, 75).granted
        limiter.set_policies(PolicySnapshot(), ms(0))
        assert ask(limiter, 0).limited_by is None
        if is_set_again:
            limiter.set_policies(limited, ms(0))
            assert ask(limiter, 0, 75).granted
            limiter.set_policies(PolicySnapshot(), ms(0))
        work(limiter, 0)
        assert ask(limiter, 0, 1000).granted

    def test_a_full_table_lets_full_buckets_go_and_keeps_debt(self, limiter_of: LimiterOf) -> None:
        bounds = BucketBounds(limits_kept=5)
        limits = Limits(namespaces={NAMESPACE: LocalLimit(publish=rates(100))})
        snapshot = PolicySnapshot(limits=limits)
        limiter = limiter_of(snapshot, bounds)
        assert ask(limiter, 0, 225).granted
        for number in range(100):
            ask(limiter, 0, topic=f"{TOPIC}{number}")
        limiter.set_policies(snapshot, ms(100))
        for number in range(100, 130):
            ask(limiter, 100, topic=f"{TOPIC}{number}")
        # The debtor is still there, though ten times as many came and went.
        assert ask(limiter, 100).retry_after_ms == 1910

    def test_beyond_its_bound_the_table_lets_go_what_no_chain_refers_to(
        self, limiter_of: LimiterOf
    ) -> None:
        bounds = BucketBounds(limits_kept=5, limits_max=5)
        limits = Limits(namespaces={NAMESPACE: LocalLimit(publish=rates(100))})
        snapshot = PolicySnapshot(limits=limits)
        limiter = limiter_of(snapshot, bounds)
        assert ask(limiter, 0, 225).granted
        for number in range(20):
            ask(limiter, 0, topic=f"{TOPIC}{number}")
        assert not ask(limiter, 0).granted
        limiter.set_policies(snapshot, ms(0))
        for number in range(20, 40):
            ask(limiter, 0, topic=f"{TOPIC}{number}")
        assert ask(limiter, 0).granted


def test_the_two_kinds_hear_of_their_own_rates(limiter_of: LimiterOf) -> None:
    group = Group("gold", Limit(rates(10), rates(20)))
    limiter = limiter_of(snapshot_of(group, orders="gold"))
    for kind in Kind:
        ask(limiter, 0, kind=kind)
    limiter.set_policies(
        snapshot_of(Group("gold", Limit(rates(30), Rates())), orders="gold"), ms(0)
    )
    work(limiter, 0)
    assert [state.quota for state in limiter.states()] == [rates(30), UNLIMITED]
