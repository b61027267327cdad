"""Which place's limit holds for a topic and for a subscription, and which names a topic goes by.

Not covered: how a limit is reckoned with (tests/unit/core/buckets), groups (test_book).
"""

import pytest

from rgd.core.policies.model import NOT_SET, UNLIMITED, Limits, LocalLimit, Rates
from rgd.core.policies.precedence import (
    NOWHERE,
    Place,
    Said,
    names_of,
    subscription_limit,
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
    ("limits", "said"),
    [
        pytest.param(Limits(), NOWHERE, id="nowhere"),
        pytest.param(
            Limits(
                topics={PARTITION: publish(1), TOPIC: publish(2)},
                namespaces={NAMESPACE: publish(3)},
            ),
            Said(Rates(1), Place.TOPIC, PARTITION),
            id="itself",
        ),
        pytest.param(
            Limits(topics={TOPIC: publish(2)}, namespaces={NAMESPACE: publish(3)}),
            Said(Rates(2), Place.TOPIC, TOPIC),
            id="the-partitioned-topic",
        ),
        pytest.param(
            Limits(namespaces={NAMESPACE: publish(3)}),
            Said(Rates(3), Place.NAMESPACE, NAMESPACE),
            id="the-namespace",
        ),
        pytest.param(
            Limits(
                topics={PARTITION: NOT_SET, TOPIC: dispatch(2)}, namespaces={NAMESPACE: publish(3)}
            ),
            Said(Rates(3), Place.NAMESPACE, NAMESPACE),
            id="each-kind-by-itself",
        ),
        pytest.param(
            Limits(
                topics={TOPIC: LocalLimit(publish=UNLIMITED)}, namespaces={NAMESPACE: publish(3)}
            ),
            Said(UNLIMITED, Place.TOPIC, TOPIC),
            id="no-limit-is-a-word-too",
        ),
        pytest.param(Limits(broker=publish(1)), NOWHERE, id="the-brokers-is-another-level"),
        pytest.param(
            Limits(namespaces={"acme/other": publish(3)}), NOWHERE, id="another-namespace"
        ),
    ],
)
def test_the_narrowest_place_that_sets_a_kind_says_it(limits: Limits, said: Said) -> None:
    assert topic_limit(limits, PARTITION, Kind.PUBLISH) == said


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        pytest.param(Limits(), NOWHERE, id="nowhere"),
        pytest.param(
            Limits(
                subscriptions={(PARTITION, "s"): dispatch(1), (TOPIC, "s"): dispatch(2)},
                topic_subscriptions={PARTITION: dispatch(3)},
            ),
            Said(Rates(1), Place.SUBSCRIPTION, "s"),
            id="itself",
        ),
        pytest.param(
            Limits(
                subscriptions={(TOPIC, "s"): dispatch(2)},
                topic_subscriptions={PARTITION: dispatch(3)},
            ),
            Said(Rates(2), Place.SUBSCRIPTION, "s"),
            id="on-the-partitioned-topic",
        ),
        pytest.param(
            Limits(
                subscriptions={(TOPIC, "other"): dispatch(2)},
                topic_subscriptions={PARTITION: dispatch(3), TOPIC: dispatch(4)},
            ),
            Said(Rates(3), Place.TOPIC, PARTITION),
            id="its-topics-subscriptions",
        ),
        pytest.param(
            Limits(
                topic_subscriptions={TOPIC: dispatch(4)},
                namespace_subscriptions={NAMESPACE: dispatch(5)},
            ),
            Said(Rates(4), Place.TOPIC, TOPIC),
            id="the-partitioned-topics-subscriptions",
        ),
        pytest.param(
            Limits(namespace_subscriptions={NAMESPACE: dispatch(5)}),
            Said(Rates(5), Place.NAMESPACE, NAMESPACE),
            id="the-namespaces-subscriptions",
        ),
        pytest.param(
            Limits(topics={TOPIC: dispatch(6)}, namespaces={NAMESPACE: dispatch(7)}),
            NOWHERE,
            id="a-topics-own-limit-is-another-level",
        ),
    ],
)
def test_a_subscription_has_its_own_then_its_topics_then_its_namespaces(
    limits: Limits, said: Said
) -> None:
    assert subscription_limit(limits, PARTITION, "s", Kind.DISPATCH) == said


def test_a_partition_has_two_names_and_another_topic_one() -> None:
    assert names_of(PARTITION) == (PARTITION, TOPIC)
    assert names_of(TOPIC) == (TOPIC,)
