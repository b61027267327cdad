"""Which place's limit holds for a topic and for a subscription, and which names a topic goes by.

Not covered: how a limit is reckoned with (tests/unit/core/buckets), groups (test_snapshot.py).
"""

import pytest

from rgd.core.policies.model import NOT_SET, UNLIMITED, Limits, LocalLimit, Rates
from rgd.core.policies.precedence import (
    NO_RATES,
    Scope,
    ScopedRates,
    topic_limit,
)
from rgd.core.units import Kind
from tests.unit.core.values import NAMESPACE, TOPIC

PARTITION = f"{TOPIC}-partition-3"


def publish(rate: int) -> LocalLimit:
    return LocalLimit(publish=Rates(rate))


def dispatch(rate: int) -> LocalLimit:
    return LocalLimit(dispatch=Rates(rate))


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        pytest.param(Limits(), NO_RATES, id="nowhere"),
        pytest.param(
            Limits(
                topics={PARTITION: publish(1), TOPIC: publish(2)},
                namespaces={NAMESPACE: publish(3)},
            ),
            ScopedRates(Rates(1), Scope.TOPIC, PARTITION),
            id="itself",
        ),
        pytest.param(
            Limits(topics={TOPIC: publish(2)}, namespaces={NAMESPACE: publish(3)}),
            ScopedRates(Rates(2), Scope.TOPIC, TOPIC),
            id="the-partitioned-topic",
        ),
        pytest.param(
            Limits(namespaces={NAMESPACE: publish(3)}),
            ScopedRates(Rates(3), Scope.NAMESPACE, NAMESPACE),
            id="the-namespace",
        ),
        pytest.param(
            Limits(
                topics={PARTITION: NOT_SET, TOPIC: dispatch(2)}, namespaces={NAMESPACE: publish(3)}
            ),
            ScopedRates(Rates(3), Scope.NAMESPACE, NAMESPACE),
            id="each-kind-by-itself",
        ),
        pytest.param(
            Limits(
                topics={TOPIC: LocalLimit(publish=UNLIMITED)}, namespaces={NAMESPACE: publish(3)}
            ),
            ScopedRates(UNLIMITED, Scope.TOPIC, TOPIC),
            id="no-limit-is-a-word-too",
        ),
        pytest.param(Limits(broker=publish(1)), NO_RATES, id="the-brokers-is-another-level"),
        pytest.param(
            Limits(namespaces={"acme/other": publish(3)}), NO_RATES, id="another-namespace"
        ),
    ],
)
def test_the_narrowest_place_that_sets_a_kind_says_it(limits: Limits, found: ScopedRates) -> None:
    assert topic_limit(limits, PARTITION, Kind.PUBLISH) == found
