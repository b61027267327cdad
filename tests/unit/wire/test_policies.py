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
from rgd.wire.errors import Reason
from rgd.wire.policies import POLICY_MAX, decode_policy, encode_policy
from tests.support.cases import cases, refused

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


@cases(
    "key, value, text",
    {
        "group": (
            "group:gold",
            GOLD,
            '{"publish":{"messages":1000,"bytes":5000000.5},"dispatch":{"messages":0.001},'
            '"shadow":true,"soft_ppm":800000,"policy":"steal"}',
        ),
        "blocked": ("group:gold", Group("gold", blocked=True), '{"blocked":true}'),
        "topic-split": (
            "group:gold",
            Group("gold", topic_split=TopicSplit.EVEN),
            '{"topic_split":"even"}',
        ),
        "unlimited": ("group:gold", Group("gold"), "{}"),
        "deleted": ("group:gold", None, "null"),
        "tenant": ("tenant:acme", "gold", '"gold"'),
        "namespace": ("namespace:acme/orders", "gold", '"gold"'),
        "topic": (f"topic:{TOPIC}", "gold", '"gold"'),
        "broker-limit": ("limit:broker", LIMIT, '{"publish":{"messages":1.5}}'),
        "not-set": ("limit:broker", NOT_SET, "{}"),
        "set-to-no-limit": (
            "limit:namespace:acme/orders",
            LocalLimit(publish=UNLIMITED),
            '{"publish":{}}',
        ),
        "as-pulsar-shows-it": (
            f"limit:topic:{TOPIC}",
            LocalLimit(dispatch=UNLIMITED, dispatch_period_s=60, dispatch_relative=True),
            '{"dispatch":{},"dispatch_period_s":60,"dispatch_relative":true}',
        ),
        "subscription-limit": (
            f"limit:subscription:{TOPIC}|my sub",
            LocalLimit(dispatch=Rates(bytes=1000)),
            '{"dispatch":{"bytes":1}}',
        ),
        "backlog": (
            "backlog:namespace:acme/orders",
            BacklogQuotas(
                BacklogQuota(size_bytes=10), BacklogQuota(age_s=60, action=BacklogAction.EVICT)
            ),
            '{"size":{"size_bytes":10,"action":"producer_request_hold"},'
            '"age":{"age_s":60,"action":"consumer_backlog_eviction"}}',
        ),
        "backlog-in-pulsars-numbers": (
            f"backlog:topic:{TOPIC}",
            BacklogQuotas(size=BacklogQuota(-2, 0, BacklogAction.REFUSE)),
            '{"size":{"size_bytes":-2,"age_s":0,"action":"producer_exception"}}',
        ),
        "no-backlog": ("backlog:namespace:a/b", BacklogQuotas(), "{}"),
    },
)
def test_a_policy_reads_as_a_person_would_write_it(key: str, value: Value, text: str) -> None:
    assert encode_policy(record(key, value)) == wrapped(text)
    assert decode_policy(key, wrapped(text)) == record(key, value)


@cases(
    "text, reason",
    {
        "tombstone": ("", Reason.UNPARSABLE),
        "cut": ("{", Reason.UNPARSABLE),
        "deep": ("[" * 5_000, Reason.BAD_STRUCTURE),
        "digits": ("9" * 5_000, Reason.BAD_STRUCTURE),
        "not-utf8": ("\ud800", Reason.UNPARSABLE),
        "large": (" " * (POLICY_MAX + 1), Reason.OVERSIZE),
        "no-object": ("[]", Reason.BAD_STRUCTURE),
        "no-version": ("{}", Reason.BAD_STRUCTURE),
        "version-true": ('{"version":true}', Reason.BAD_STRUCTURE),
        "version-text": ('{"version":"1"}', Reason.BAD_STRUCTURE),
        "version-later": ('{"version":2,"later":1}', Reason.UNKNOWN_VERSION),
        "no-value": ('{"version":1,"revision":1,"writer":"b"}', Reason.BAD_STRUCTURE),
        "more": (
            '{"version":1,"revision":1,"writer":"b","value":null,"x":1}',
            Reason.BAD_STRUCTURE,
        ),
        "revision-large": (
            f'{{"version":1,"revision":{COUNT_MAX + 1},"writer":"b","value":null}}',
            Reason.BAD_STRUCTURE,
        ),
        "writer-empty": ('{"version":1,"revision":1,"writer":"","value":null}', Reason.BAD_NAME),
    },
)
def test_what_is_no_record_is_refused_with_its_reason(text: str, reason: Reason) -> None:
    with refused(reason):
        decode_policy("group:gold", text.encode(errors="surrogatepass"))


@cases(
    "key, value, reason",
    {
        "group-a-text": ("group:gold", '"gold"', Reason.BAD_STRUCTURE),
        "group-unknown-field": ("group:gold", '{"name":"gold"}', Reason.BAD_STRUCTURE),
        "blocked-number": ("group:gold", '{"blocked":1}', Reason.BAD_STRUCTURE),
        "policy-unknown": ("group:gold", '{"policy":"best"}', Reason.BAD_STRUCTURE),
        "rates-number": ("group:gold", '{"publish":5}', Reason.BAD_STRUCTURE),
        "dimension-unknown": ("group:gold", '{"publish":{"x":5}}', Reason.BAD_STRUCTURE),
        "limit-blocked": ("limit:broker", '{"blocked":true}', Reason.BAD_STRUCTURE),
        "limit-a-list": ("limit:broker", "[]", Reason.BAD_STRUCTURE),
        "period-zero": ("limit:broker", '{"dispatch_period_s":0}', Reason.BAD_STRUCTURE),
        "period-long": ("limit:broker", '{"dispatch_period_s":2147483648}', Reason.BAD_STRUCTURE),
        "period-half": ("limit:broker", '{"dispatch_period_s":1.5}', Reason.BAD_STRUCTURE),
        "relative-number": ("limit:broker", '{"dispatch_relative":1}', Reason.BAD_STRUCTURE),
        "backlog-a-text": ("backlog:namespace:a/b", '"gold"', Reason.BAD_STRUCTURE),
        "backlog-a-limit": ("backlog:namespace:a/b", '{"publish":{}}', Reason.BAD_STRUCTURE),
        "no-action": ("backlog:namespace:a/b", '{"size":{"size_bytes":1}}', Reason.BAD_STRUCTURE),
        "action": ("backlog:namespace:a/b", '{"age":{"action":"hold"}}', Reason.BAD_STRUCTURE),
        "age-beyond-pulsars": (
            "backlog:namespace:a/b",
            '{"age":{"age_s":2147483648,"action":"producer_exception"}}',
            Reason.BAD_STRUCTURE,
        ),
        "size-with-a-point": (
            "backlog:namespace:a/b",
            '{"size":{"size_bytes":1.0,"action":"producer_exception"}}',
            Reason.BAD_STRUCTURE,
        ),
        "tenant-number": ("tenant:acme", "7", Reason.BAD_STRUCTURE),
        "group-name": ("tenant:acme", '"a/b"', Reason.BAD_NAME),
    },
)
def test_a_value_that_its_key_cannot_hold_is_refused(key: str, value: str, reason: Reason) -> None:
    with refused(reason):
        decode_policy(key, wrapped(value))


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        ("0", Reason.BAD_NUMBER),
        ("-1", Reason.BAD_NUMBER),
        ("0.0001", Reason.BAD_NUMBER),
        ("1e-4", Reason.BAD_NUMBER),
        ("1e-999999999", Reason.BAD_NUMBER),
        ("1e999999999", Reason.BAD_NUMBER),
        *((text, Reason.BAD_NUMBER) for text in ("-1e999999", '"NaN"', '"sNaN"', '"-Infinity"')),
        ("NaN", Reason.UNPARSABLE),
        ("Infinity", Reason.UNPARSABLE),
        ("9000000000000000.001", Reason.BAD_NUMBER),
        ("9" * 4_000, Reason.BAD_NUMBER),
        ("true", Reason.BAD_STRUCTURE),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_rate_that_cannot_be_one_is_refused(rate: str, reason: Reason) -> None:
    with refused(reason):
        decode_policy("limit:broker", wrapped(f'{{"publish":{{"messages":{rate}}}}}'))


@pytest.mark.parametrize(
    "key",
    ["", "gold", "group:", "group:a/b", "tenant:a b", "namespace:acme", "topic:eu", "limit:",
     "limit:topic:eu", "limit:subscription:eu|s", f"limit:subscription:{TOPIC}", "limit:namespace:eu",
     "limit:namespace-subscriptions:eu", "limit:topic-subscriptions:eu", "backlog:namespace:",
     "backlog:topic:acme/orders", "limit:broker:"],
)  # fmt: skip
def test_a_key_that_names_nothing_is_refused(key: str) -> None:
    with refused(Reason.BAD_NAME):
        decode_policy(key, wrapped("null"))


@cases(
    "written, reason",
    {
        "another-group": (record("group:gold", Group("silver")), Reason.BAD_NAME),
        "group-a-text": (record("group:gold", "gold"), Reason.BAD_STRUCTURE),
        "rate-0": (record("limit:broker", LocalLimit(BLOCKED)), Reason.BAD_NUMBER),
        "period": (record("limit:broker", LocalLimit(dispatch_period_s=0)), Reason.BAD_STRUCTURE),
        "backlog-a-limit": (record("backlog:namespace:a/b", NOT_SET), Reason.BAD_STRUCTURE),
        "backlog-beyond-pulsars": (
            record("backlog:namespace:a/b", BacklogQuotas(BacklogQuota(1 << 63))),
            Reason.BAD_STRUCTURE,
        ),
        "group-name": (record("tenant:acme", "a/b"), Reason.BAD_NAME),
        "revision-negative": (record("tenant:acme", None, -1), Reason.BAD_STRUCTURE),
        "writer-empty": (PolicyRecord("tenant:a", 1, "", None), Reason.BAD_NAME),
    },
)
def test_what_could_not_be_read_back_is_not_written(written: PolicyRecord, reason: Reason) -> None:
    with refused(reason):
        encode_policy(written)
