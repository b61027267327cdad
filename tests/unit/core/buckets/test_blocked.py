"""Publishing to a topic whose backlog exceeds its quota. Not when a topic is blocked (core/backlog)."""

import pytest

from rgd.core.backlog.model import QuotaType
from rgd.core.backlog.quota import Blocked
from rgd.core.buckets.decision import Decision, OverBacklog, Request
from rgd.core.buckets.limiter import Limiter
from rgd.core.buckets.split import IDLE_ROUNDS
from rgd.core.policies.model import Attachments, BacklogAction, Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Dimension
from tests.support.limiter_alone import numbered
from tests.unit.core.buckets.split_house import EVEN, A, House, gold
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, ms, rates

HELD = Blocked(QuotaType.SIZE, BacklogAction.HOLD, ms(30_000), ms(60_000))
REFUSED = Blocked(QuotaType.TIME, BacklogAction.REFUSE, ms(0), ms(60_000))
ASKED = Request(messages=2, bytes=50, namespace=NAMESPACE, topic=TOPIC)


@pytest.fixture
def limiter() -> Limiter:
    limiter = Limiter(BUCKETS, numbered(lambda group, kind, _: group.rates(kind)))
    groups = {"gold": Group("gold", Limit(rates(100), rates(100)))}
    attach = Attachments(namespaces={NAMESPACE: "gold"})
    limiter.set_policies(PolicySnapshot(groups, attach), ms(0))
    return limiter


def is_granted(limiter: Limiter) -> bool:
    answer = limiter.acquire(ASKED, ms(1))
    return isinstance(answer, Decision) and answer.granted


@pytest.mark.parametrize(
    ("why", "at", "expected"),
    [
        pytest.param(HELD, 1000, OverBacklog(QuotaType.SIZE, True, 59_000), id="held"),
        pytest.param(HELD, 30_000, OverBacklog(QuotaType.SIZE, False, 30_000), id="long"),
        pytest.param(REFUSED, 59_999.5, OverBacklog(QuotaType.TIME, False, 100), id="refused"),
    ],
)
def test_a_block_is_answered_until_the_next_check(
    limiter: Limiter, why: Blocked, at: float, expected: OverBacklog
) -> None:
    assert is_granted(limiter)
    limiter.block(TOPIC, why)
    assert limiter.acquire(ASKED, ms(at)) == expected


def test_what_was_refused_lately_is_known_while_it_is_blocked(limiter: Limiter) -> None:
    limiter.block(TOPIC, HELD)
    assert limiter.blocked.recent(TOPIC) is None
    limiter.acquire(ASKED, ms(1))
    recent = limiter.blocked.recent(TOPIC)
    assert recent is not None
    assert recent.total(Dimension.BYTES, ms(2))[:3] == (1, 0, 2)
    limiter.block(TOPIC, None)
    assert limiter.blocked.recent(TOPIC) is None


def test_a_name_whose_part_goes_idle_again_and_again_is_remembered_once() -> None:
    house = House(gold(EVEN))
    for _ in range(3):
        house.ask(A, group="gold")
        for _ in range(IDLE_ROUNDS + 1):
            house.round()
    assert house.limiter.resolved_total == 3
    of_topic = [*house.limiter.blocked.put(A, REFUSED)]
    assert len(of_topic) == len({*of_topic}) == 2
