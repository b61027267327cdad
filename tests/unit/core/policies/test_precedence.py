"""Which place's limit holds for a topic and for a subscription, and which names a topic goes by.

Not covered: how a limit is reckoned with (tests/unit/core/buckets), groups (test_snapshot.py).
"""

from rgd.core.policies.model import NOT_SET, UNLIMITED, Limits, LocalLimit, Rates
from rgd.core.policies.precedence import Scope, Scoped, topic_limit
from rgd.core.units import Kind
from tests.support.cases import cases
from tests.unit.core.values import NAMESPACE, TOPIC

PARTITION = f"{TOPIC}-partition-3"


def publish(rate: int) -> LocalLimit:
    return LocalLimit(publish=Rates(rate))


def dispatch(rate: int) -> LocalLimit:
    return LocalLimit(dispatch=Rates(rate))


@cases(
    "limits, found",
    {
        "nowhere": (Limits(), None),
        "itself": (
            Limits(
                topics={PARTITION: publish(1), TOPIC: publish(2)},
                namespaces={NAMESPACE: publish(3)},
            ),
            Scoped(Rates(1), Scope.TOPIC, PARTITION),
        ),
        "the-partitioned-topic": (
            Limits(topics={TOPIC: publish(2)}, namespaces={NAMESPACE: publish(3)}),
            Scoped(Rates(2), Scope.TOPIC, TOPIC),
        ),
        "the-namespace": (
            Limits(namespaces={NAMESPACE: publish(3)}),
            Scoped(Rates(3), Scope.NAMESPACE, NAMESPACE),
        ),
        "each-kind-by-itself": (
            Limits(
                topics={PARTITION: NOT_SET, TOPIC: dispatch(2)}, namespaces={NAMESPACE: publish(3)}
            ),
            Scoped(Rates(3), Scope.NAMESPACE, NAMESPACE),
        ),
        "no-limit-is-a-word-too": (
            Limits(
                topics={TOPIC: LocalLimit(publish=UNLIMITED)}, namespaces={NAMESPACE: publish(3)}
            ),
            Scoped(UNLIMITED, Scope.TOPIC, TOPIC),
        ),
        "the-brokers-is-another-level": (Limits(broker=publish(1)), None),
        "another-namespace": (Limits(namespaces={"acme/other": publish(3)}), None),
    },
)
def test_the_narrowest_place_that_sets_a_kind_says_it(
    limits: Limits, found: Scoped[Rates] | None
) -> None:
    assert topic_limit(limits, PARTITION, Kind.PUBLISH) == found
