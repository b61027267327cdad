"""Levels under a new snapshot: told at once or when they are asked for, in slices, and which ones go.

Not covered: which levels apply to a name (test_chain.py), a broker's share under a new snapshot
(tests/unit/core/broker/test_sharing.py), counts under moves (tests/property/test_moves.py).
"""

from collections.abc import Callable
from dataclasses import replace
from weakref import WeakSet

import pytest
from typing_extensions import override

from rgd.core.bounds import BOUNDS, BucketBounds
from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.limiter import FORMER_PARTS, Limiter
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit
from rgd.core.policies.snapshot import Changes, PolicySnapshot, changes_between
from rgd.core.policies.table import TableWriter
from rgd.core.units import Nanos
from tests.support.limiter_alone import LimiterAlone, whole
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key, ms, rates

PARTITION = f"{TOPIC}-partition-0"


def snapshot_of(*groups: Group, limits: Limits | None = None, **attached: str) -> PolicySnapshot:
    namespaces = {f"acme/{name}": group for name, group in attached.items()}
    return PolicySnapshot(
        {one.name: one for one in groups}, Attachments(namespaces=namespaces), limits or Limits()
    )


def gold(units: float | None, name: str = "gold") -> Group:
    return Group(name, Limit(rates(units)))


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


LimiterOf = Callable[..., Limiter]


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


def test_a_debt_is_paid_at_the_rate_in_force_and_not_at_that_of_the_asking(
    limiter_of: LimiterOf,
) -> None:
    limiter = limiter_of(snapshot_of(gold(100), orders="gold"))
    assert ask(limiter, 0, 75).granted
    limiter.set_policies(snapshot_of(gold(10), orders="gold"), ms(100))
    # 25 left, 50 owed; 10 of it were paid at 100/s, the rest is at 10/s.
    assert ask(limiter, 200).retry_after_ms == 4000


def test_groups_that_are_gone_are_gone_at_once_and_let_go_when_the_plane_says_so(
    limiter_of: LimiterOf,
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


def test_each_topic_has_a_bucket_of_its_own_under_a_namespaces_limit(limiter_of: LimiterOf) -> None:
    limits = Limits(namespaces={NAMESPACE: LocalLimit(publish=rates(100))})
    limiter = limiter_of(PolicySnapshot(limits=limits))
    assert ask(limiter, 0, 25).granted
    assert not ask(limiter, 0).granted
    assert ask(limiter, 0, 25, topic=f"{TOPIC}2").granted
    assert ask(limiter, 0, 25, topic=PARTITION).granted


@pytest.mark.parametrize("is_set_again", [False, True])
def test_a_removed_limit_that_a_request_noticed_first_is_no_work(
    limiter_of: LimiterOf, *, is_set_again: bool
) -> None:
    limited = PolicySnapshot(limits=Limits(namespaces={NAMESPACE: LocalLimit(publish=rates(100))}))
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


def test_a_full_table_lets_full_buckets_go_and_keeps_debt(limiter_of: LimiterOf) -> None:
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


class Namespace(str):
    """A name of which it can be seen whether it is still in memory."""

    __slots__ = ("__weakref__",)


def test_former_policies_leave_the_memory_in_slices_and_stay_while_in_force() -> None:
    writer: TableWriter[str, str] = TableWriter()
    names = [Namespace(f"acme/{number}") for number in range(20_000)]
    alive = WeakSet(names)
    for name in names:
        writer.put(name, "gold")
    limiter = LimiterAlone(BUCKETS, whole)
    attached = Attachments(namespaces=writer.table())
    limiter.set_policies(PolicySnapshot({"gold": gold(100)}, attached), ms(0))
    del names, name, writer, attached
    work(limiter, 0)
    assert len(alive) == 20_000
    limiter.set_policies(
        PolicySnapshot(attach=Attachments(namespaces=TableWriter().table())), ms(1)
    )
    assert len(alive) == 20_000
    while limiter.is_behind:
        before = len(alive)
        limiter.work(ms(2))
        # Twenty a part on average.
        assert before - len(alive) <= 2 * 20 * FORMER_PARTS
    assert not alive
