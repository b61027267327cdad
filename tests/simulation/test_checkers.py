"""The checkers can fail: each law, broken on purpose, is noticed; and an honest run breaks none.

Not covered: that the core keeps the laws whatever happens (test_fault_mix.py).
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Answer, Decision, Request
from rgd.core.buckets.limiter import Limiter
from rgd.core.errors import InvariantBroken
from rgd.core.policies.model import GroupKey, Rates
from rgd.core.units import Nanos
from sim import workloads
from sim.checkers import Checkers, Violation
from sim.cluster import Cluster
from sim.fault import Deed, Fault
from sim.integral import StepIntegral
from sim.member import Brain, CoreBrain
from sim.metrics import figures_of
from sim.scenario import Bounds, Ground, Scenario

pytestmark = pytest.mark.slow

SMALL = Scenario(
    "small",
    "three brokers that want more than there is",
    workloads.steady(1.5),
    daemons=3,
    rounds=14,
    warmup=5,
    asks_per_s=300,
)


def broken(
    make_brain: Callable[[BrokerSettings, Nanos], Brain], scenario: Scenario = SMALL
) -> list[Violation]:
    """What the checkers find in a world with such brains."""
    cluster = Cluster(scenario, seed=1, make_brain=make_brain)
    checkers = Checkers(cluster, "max-min")
    return checkers.finish(cluster.run())


def laws(found: list[Violation]) -> set[str]:
    return {violation.law for violation in found}


def test_an_honest_world_breaks_no_law() -> None:
    assert broken(CoreBrain) == []


class Generous(CoreBrain):
    """Takes a third more than its share, and believes that everybody agrees with that."""

    def __init__(self, settings: BrokerSettings, now: Nanos) -> None:
        super().__init__(settings, now)
        limiter = self.broker.limiter
        set_share = limiter.set_share

        def set_more(slot: int, share: Rates, now: Nanos) -> None:
            set_share(slot, Rates((share.messages or 0) * 4 // 3, share.bytes), now)

        limiter.set_share = set_more  # type: ignore[method-assign]


def test_more_in_force_than_there_is_is_noticed_at_once_and_over_a_round() -> None:
    found = broken(Generous)
    assert {"conservation", "excess", "admission"} <= laws(found)
    stories = " ".join(violation.story for violation in found)
    assert "all agree" in stories
    assert "quotas in force in a round" in stories


class Open(CoreBrain):
    """Grants whatever is asked, with shares as they should be."""

    def __init__(self, settings: BrokerSettings, now: Nanos) -> None:
        super().__init__(settings, now)
        limiter = self.limiter

        def acquire(request: Request, now: Nanos) -> Answer:
            answer = limiter.acquire(request, now)
            assert isinstance(answer, Decision)
            return answer._replace(granted=True, messages=request.messages)

        self.limiter = _Gate(limiter, acquire)  # type: ignore[assignment]


class _Gate:
    def __init__(self, limiter: Limiter, acquire: Callable[[Request, Nanos], Answer]) -> None:
        self.acquire = acquire
        self._limiter = limiter
        self.news = limiter.news

    def state(self, key: GroupKey) -> object:
        return self._limiter.state(key)


def test_more_granted_than_a_bucket_may_is_noticed() -> None:
    assert {"bucket", "admission"} <= laws(broken(Open))


class Stingy(CoreBrain):
    """Grants nothing to one broker's callers."""

    def __init__(self, settings: BrokerSettings, now: Nanos) -> None:
        super().__init__(settings, now)
        if settings.sender.broker == "broker-001":
            refusal = Decision(granted=False, messages=0, bytes=0, retry_after_ms=1)
            self.limiter = _Gate(self.limiter, lambda _request, _now: refusal)  # type: ignore[assignment]


def test_one_that_starves_is_noticed() -> None:
    found = broken(Stingy)
    assert laws(found) == {"starvation"}
    assert all("broker-001" in violation.story for violation in found)


class Restless(CoreBrain):
    """Finds itself broken."""

    def validate(self) -> None:
        raise InvariantBroken("on purpose")


def test_what_the_core_finds_of_itself_is_noted() -> None:
    assert "invariant" in laws(broken(Restless))


class Stubborn(CoreBrain):
    """Goes on believing what it believed first."""

    def shares(self, key: GroupKey) -> dict[str, Rates] | None:
        names = self.broker.sharing.brokers
        return dict.fromkeys(names, Rates(hash(self.broker.settings.sender.incarnation) % 10**6))


def _crash(ground: Ground) -> tuple[Fault, ...]:
    begin = ground.begin_ns
    return (Fault(Deed.CRASH, (2,), begin, begin + 2 * ground.round_ns),)


def _goodbye(ground: Ground) -> tuple[Fault, ...]:
    return (Fault(Deed.LEAVE, (2,), ground.begin_ns),)


@pytest.mark.parametrize("faults", [_crash, _goodbye])
def test_disagreement_long_after_a_fault_is_noticed(
    faults: Callable[[Ground], tuple[Fault, ...]],
) -> None:
    disturbed = replace(
        SMALL, faults=faults, bounds=replace(Bounds(), shares=None, admitted_round=None)
    )
    stories = {one.story for one in broken(Stubborn, disturbed) if one.law == "agreement"}
    assert any(story.endswith(" after healing") for story in stories)
    assert broken(CoreBrain, disturbed) == []


def test_shares_that_become_fair_later_than_a_scenario_allows_are_noticed() -> None:
    bounds = Bounds(shares=None, admitted_round=None, heals_in_rounds=0)
    late = broken(CoreBrain, replace(SMALL, faults=_crash, bounds=bounds))
    assert [one.story for one in late] == ["shares were not fair 0 rounds after the last fault"]


def test_laws_of_max_min_are_not_asked_of_rivals() -> None:
    cluster = Cluster(SMALL, seed=1, make_brain=Generous)
    checkers = Checkers(cluster, "fps")
    recording = cluster.run()
    assert checkers.finish(recording) == []
    assert figures_of(recording).overshoot_10 > 1.2


def test_an_integral_finds_the_highest_window_wherever_it_begins() -> None:
    rate = StepIntegral(is_kept=True)
    for moment, value in ((0, 10), (70, 20), (130, 10)):
        rate.change(value, moment)
    highest, at = rate.highest(100, 0, 300)
    assert highest == 60 * 20 + 40 * 10
    assert 30 <= at <= 70
    assert rate.highest(100, 200, 300) == (1000, 200)


@pytest.mark.parametrize(("restarts", "flowed"), [([100], [1000]), ([50, 100], [500, 500])])
def test_what_flows_is_counted_once(restarts: list[int], flowed: list[int]) -> None:
    rate = StepIntegral()
    rate.change(10, 0)
    assert [rate.restart(moment) for moment in restarts] == flowed
