"""Policies as JSON: how they read, exactness, and each fault with its reason.

Not covered: whole ranges of values and arbitrary bytes (tests/property/test_wire_*.py), the table.
"""

import pytest

from rgd.core.policies.model import (
    BLOCKED,
    NOT_SET,
    UNLIMITED,
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    Group,
    Limit,
    LocalLimit,
    Rates,
    SharePolicyName,
    TopicSplit,
)
from rgd.core.policies.records import PolicyRecord, Value
from rgd.core.units import COUNT_MAX
from rgd.wire.errors import Reason, WireError
from rgd.wire.policies import POLICY_MAX, decode_policy, encode_policy

TOPIC = "persistent://acme/orders/eu"
LIMIT = LocalLimit(publish=Rates(messages=1500))


def record(key: str, value: Value, revision: int = 3) -> PolicyRecord:
    return PolicyRecord(key, revision, "b1", value)


def wrapped(value: str) -> bytes:
    return f'{{"version":1,"revision":3,"writer":"b1","value":{value}}}'.encode()


GOLD = Group(
    "gold",
    Limit(Rates(1_000_000, 5_000_000_500), Rates(messages=1)),
    shadow=True,
    soft_ppm=800_000,
    policy=SharePolicyName.STEAL,
)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        pytest.param(
            "group:gold",
            GOLD,
            '{"publish":{"messages":1000,"bytes":5000000.5},"dispatch":{"messages":0.001},'
            '"shadow":true,"soft_ppm":800000,"policy":"steal"}',
            id="group",
        ),
        pytest.param("group:gold", Group("gold", blocked=True), '{"blocked":true}', id="blocked"),
        pytest.param(
            "group:gold",
            Group("gold", topic_split=TopicSplit.EVEN),
            '{"topic_split":"even"}',
            id="topic-split",
        ),
        pytest.param("group:gold", Group("gold"), "{}", id="unlimited"),
        pytest.param("group:gold", None, "null", id="deleted"),
        pytest.param("tenant:acme", "gold", '"gold"', id="tenant"),
        pytest.param("namespace:acme/orders", "gold", '"gold"', id="namespace"),
        pytest.param(f"topic:{TOPIC}", "gold", '"gold"', id="topic"),
        pytest.param("limit:broker", LIMIT, '{"publish":{"messages":1.5}}', id="broker-limit"),
        pytest.param("limit:broker", NOT_SET, "{}", id="not-set"),
        pytest.param(
            "limit:namespace:acme/orders",
            LocalLimit(publish=UNLIMITED),
            '{"publish":{}}',
            id="set-to-no-limit",
        ),
        pytest.param(
            f"limit:topic:{TOPIC}", LIMIT, '{"publish":{"messages":1.5}}', id="topic-limit"
        ),
        pytest.param(
            f"limit:topic:{TOPIC}",
            LocalLimit(dispatch=UNLIMITED, dispatch_period_s=60, dispatch_relative=True),
            '{"dispatch":{},"dispatch_period_s":60,"dispatch_relative":true}',
            id="as-pulsar-shows-it",
        ),
        pytest.param(
            f"limit:subscription:{TOPIC}|my sub",
            LocalLimit(dispatch=Rates(bytes=1000)),
            '{"dispatch":{"bytes":1}}',
            id="subscription-limit",
        ),
        pytest.param(
            "limit:namespace-subscriptions:acme/orders",
            LocalLimit(dispatch=Rates(messages=2000)),
            '{"dispatch":{"messages":2}}',
            id="subscriptions-of-a-namespace",
        ),
        pytest.param(
            f"limit:topic-subscriptions:{TOPIC}",
            LocalLimit(dispatch=Rates(messages=2000)),
            '{"dispatch":{"messages":2}}',
            id="subscriptions-of-a-topic",
        ),
        pytest.param(
            "backlog:namespace:acme/orders",
            BacklogQuotas(
                BacklogQuota(size_bytes=10),
                BacklogQuota(age_s=60, action=BacklogAction.EVICT),
            ),
            '{"size":{"size_bytes":10,"action":"producer_request_hold"},'
            '"age":{"age_s":60,"action":"consumer_backlog_eviction"}}',
            id="backlog",
        ),
        pytest.param(
            f"backlog:topic:{TOPIC}",
            BacklogQuotas(size=BacklogQuota(-2, 0, BacklogAction.REFUSE)),
            '{"size":{"size_bytes":-2,"age_s":0,"action":"producer_exception"}}',
            id="backlog-in-pulsars-numbers",
        ),
        pytest.param("backlog:namespace:a/b", BacklogQuotas(), "{}", id="no-backlog"),
    ],
)
def test_a_policy_reads_as_a_person_would_write_it(key: str, value: Value, text: str) -> None:
    assert encode_policy(record(key, value)) == wrapped(text)
    assert decode_policy(key, wrapped(text)) == record(key, value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", Reason.UNPARSABLE, id="tombstone"),
        pytest.param("{", Reason.UNPARSABLE, id="cut"),
        pytest.param("[" * 5_000, Reason.BAD_STRUCTURE, id="deep"),
        pytest.param("9" * 5_000, Reason.BAD_STRUCTURE, id="digits"),
        pytest.param("\ud800", Reason.UNPARSABLE, id="not-utf8"),
        pytest.param(" " * (POLICY_MAX + 1), Reason.OVERSIZE, id="large"),
        pytest.param("[]", Reason.BAD_STRUCTURE, id="no-object"),
        pytest.param("{}", Reason.BAD_STRUCTURE, id="no-version"),
        pytest.param('{"version":true}', Reason.BAD_STRUCTURE, id="version-true"),
        pytest.param('{"version":"1"}', Reason.BAD_STRUCTURE, id="version-text"),
        pytest.param('{"version":2,"later":1}', Reason.UNKNOWN_VERSION, id="version-later"),
        pytest.param(
            '{"version":1,"revision":1,"writer":"b"}', Reason.BAD_STRUCTURE, id="no-value"
        ),
        pytest.param(
            '{"version":1,"revision":1,"writer":"b","value":null,"x":1}',
            Reason.BAD_STRUCTURE,
            id="more",
        ),
        pytest.param(
            f'{{"version":1,"revision":{COUNT_MAX + 1},"writer":"b","value":null}}',
            Reason.BAD_STRUCTURE,
            id="revision-large",
        ),
        pytest.param(
            '{"version":1,"revision":1,"writer":"","value":null}',
            Reason.BAD_NAME,
            id="writer-empty",
        ),
    ],
)
def test_what_is_no_record_is_refused_with_its_reason(text: str, reason: Reason) -> None:
    with pytest.raises(WireError) as caught:
        decode_policy("group:gold", text.encode(errors="surrogatepass"))
    assert caught.value.reason is reason


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        pytest.param("group:gold", '"gold"', Reason.BAD_STRUCTURE, id="group-a-text"),
        pytest.param(
            "group:gold", '{"name":"gold"}', Reason.BAD_STRUCTURE, id="group-unknown-field"
        ),
        pytest.param("group:gold", '{"blocked":1}', Reason.BAD_STRUCTURE, id="blocked-number"),
        pytest.param("group:gold", '{"policy":"best"}', Reason.BAD_STRUCTURE, id="policy-unknown"),
        pytest.param("group:gold", '{"publish":5}', Reason.BAD_STRUCTURE, id="rates-number"),
        pytest.param(
            "group:gold", '{"publish":{"x":5}}', Reason.BAD_STRUCTURE, id="dimension-unknown"
        ),
        pytest.param("limit:broker", '{"blocked":true}', Reason.BAD_STRUCTURE, id="limit-blocked"),
        pytest.param("limit:broker", "[]", Reason.BAD_STRUCTURE, id="limit-a-list"),
        pytest.param(
            "limit:broker", '{"dispatch_period_s":0}', Reason.BAD_STRUCTURE, id="period-zero"
        ),
        pytest.param(
            "limit:broker",
            '{"dispatch_period_s":2147483648}',
            Reason.BAD_STRUCTURE,
            id="period-long",
        ),
        pytest.param(
            "limit:broker", '{"dispatch_period_s":1.5}', Reason.BAD_STRUCTURE, id="period-half"
        ),
        pytest.param(
            "limit:broker", '{"dispatch_relative":1}', Reason.BAD_STRUCTURE, id="relative-number"
        ),
        pytest.param("backlog:namespace:a/b", '"gold"', Reason.BAD_STRUCTURE, id="backlog-a-text"),
        pytest.param(
            "backlog:namespace:a/b", '{"publish":{}}', Reason.BAD_STRUCTURE, id="backlog-a-limit"
        ),
        pytest.param(
            "backlog:namespace:a/b",
            '{"size":{"size_bytes":1}}',
            Reason.BAD_STRUCTURE,
            id="no-action",
        ),
        pytest.param(
            "backlog:namespace:a/b", '{"age":{"action":"hold"}}', Reason.BAD_STRUCTURE, id="action"
        ),
        pytest.param(
            "backlog:namespace:a/b",
            '{"age":{"age_s":2147483648,"action":"producer_exception"}}',
            Reason.BAD_STRUCTURE,
            id="age-beyond-pulsars",
        ),
        pytest.param(
            "backlog:namespace:a/b",
            '{"size":{"size_bytes":1.0,"action":"producer_exception"}}',
            Reason.BAD_STRUCTURE,
            id="size-with-a-point",
        ),
        pytest.param("tenant:acme", "7", Reason.BAD_STRUCTURE, id="tenant-number"),
        pytest.param("tenant:acme", '"a/b"', Reason.BAD_NAME, id="group-name"),
    ],
)
def test_a_value_that_its_key_cannot_hold_is_refused(key: str, value: str, reason: Reason) -> None:
    with pytest.raises(WireError) as caught:
        decode_policy(key, wrapped(value))
    assert caught.value.reason is reason


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        ("0", Reason.BAD_NUMBER),
        ("0.000", Reason.BAD_NUMBER),
        ("-1", Reason.BAD_NUMBER),
        ("-1.5", Reason.BAD_NUMBER),
        ("0.0001", Reason.BAD_NUMBER),
        ("1e-4", Reason.BAD_NUMBER),
        ("1e-999999999", Reason.BAD_NUMBER),
        ("1e999999999", Reason.BAD_NUMBER),
        ("NaN", Reason.UNPARSABLE),
        ("Infinity", Reason.UNPARSABLE),
        ("9000000000000000.001", Reason.BAD_NUMBER),
        ("9" * 4_000, Reason.BAD_NUMBER),
        ("true", Reason.BAD_STRUCTURE),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_rate_that_cannot_be_one_is_refused(rate: str, reason: Reason) -> None:
    with pytest.raises(WireError) as caught:
        decode_policy("limit:broker", wrapped(f'{{"publish":{{"messages":{rate}}}}}'))
    assert caught.value.reason is reason


@pytest.mark.parametrize(
    "key",
    ["", "gold", "group:", "group:a/b", "tenant:a b", "namespace:acme", "topic:eu", "limit:",
     "limit:topic:eu", "limit:subscription:eu|s", f"limit:subscription:{TOPIC}", "limit:namespace:eu",
     "limit:namespace-subscriptions:eu", "limit:topic-subscriptions:eu", "backlog:namespace:",
     "backlog:topic:acme/orders", "limit:broker:"],
)  # fmt: skip
def test_a_key_that_names_nothing_is_refused(key: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_policy(key, wrapped("null"))
    assert caught.value.reason is Reason.BAD_NAME


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        pytest.param(record("group:gold", Group("silver")), Reason.BAD_NAME, id="another-group"),
        pytest.param(record("group:gold", "gold"), Reason.BAD_STRUCTURE, id="group-a-text"),
        pytest.param(record("limit:broker", LocalLimit(BLOCKED)), Reason.BAD_NUMBER, id="rate-0"),
        pytest.param(
            record("limit:broker", LocalLimit(dispatch_period_s=0)),
            Reason.BAD_STRUCTURE,
            id="period",
        ),
        pytest.param(
            record("backlog:namespace:a/b", NOT_SET), Reason.BAD_STRUCTURE, id="backlog-a-limit"
        ),
        pytest.param(
            record("backlog:namespace:a/b", BacklogQuotas(BacklogQuota(1 << 63))),
            Reason.BAD_STRUCTURE,
            id="backlog-beyond-pulsars",
        ),
        pytest.param(record("tenant:acme", "a/b"), Reason.BAD_NAME, id="group-name"),
        pytest.param(record("tenant:acme", None, -1), Reason.BAD_STRUCTURE, id="revision-negative"),
        pytest.param(PolicyRecord("tenant:a", 1, "", None), Reason.BAD_NAME, id="writer-empty"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(written: PolicyRecord, reason: Reason) -> None:
    with pytest.raises(WireError) as caught:
        encode_policy(written)
    assert caught.value.reason is reason
