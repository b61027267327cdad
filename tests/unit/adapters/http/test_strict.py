"""Reading bodies: every refusal names the field and what was expected.

Not covered: what a good body means (test_acquire, test_groups, test_pulsar_admin).
"""

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from rgd.adapters.http.bodies import AcquireBody, GroupBody
from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.strict import OBJECT_BYTES_MAX, BodyDecoder
from rgd.core.policies.model import SharePolicyName, TopicSplit
from rgd.core.units import COUNT_MAX

ACQUIRE = BodyDecoder(AcquireBody)
GROUP = BodyDecoder(GroupBody)

COUNT = f"expected an integer from 0 to {COUNT_MAX}"
RATE = f"expected a number above 0 and at most {COUNT_MAX}, units per second"
FIELDS = (
    "tenant, namespace, group, topic, subscription, kind, partial, attempt, held_messages, "
    "held_bytes, messages, bytes"
)


def reason_of(decoder: BodyDecoder[AcquireBody] | BodyDecoder[GroupBody], body: bytes) -> str:
    with pytest.raises(BadBody) as caught:
        decoder.decode(body)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"messages":-1}', f"messages: {COUNT}, got -1"),
        (b'{"messages":1.5}', f"messages: {COUNT}, got 1.5"),
        (b'{"messages":1.0}', f"messages: {COUNT}, got 1.0"),
        (b'{"messages":9223372036854775808}', f"messages: {COUNT}, got 9223372036854775808"),
        (b'{"messages":18446744073709551616}', f"messages: {COUNT}, got 18446744073709551616"),
        (b'{"messages":1e400}', f"messages: {COUNT}, got 1e400"),
        (b'{"messages":true}', f"messages: {COUNT}, got true"),
        (b'{"messages":"1"}', f'messages: {COUNT}, got "1"'),
        (b'{"messages":null}', f"messages: {COUNT}, got null"),
        (b'{"messages":[1]}', f"messages: {COUNT}, got an array"),
        (b'{"bytes":{"n":1}}', f"bytes: {COUNT}, got an object"),
        (b'{"attempt":0}', f"attempt: expected an integer from 1 to {COUNT_MAX}, got 0"),
        (b'{"held_bytes":-5}', f"held_bytes: {COUNT}, got -5"),
        (b'{"tenant":7}', "tenant: expected a string, got 7"),
        (b'{"topic":null}', "topic: expected a string, got null"),
        (b'{"kind":"consume"}', 'kind: expected publish or dispatch, got "consume"'),
        (b'{"partial":1}', "partial: expected true or false, got 1"),
        (b'{"tenat":"acme"}', f"tenat: unknown field; expected one of {FIELDS}"),
        (b"[]", "body: expected a JSON object, got an array"),
        (b"3", "body: expected a JSON object, got 3"),
        (b"null", "body: expected a JSON object, got null"),
        (b"", "body: expected JSON in UTF-8, got nothing"),
        (b" \n", "body: expected JSON in UTF-8, got nothing"),
        (b'{"tenant":"\xff"}', 'tenant: expected a string, got "\N{REPLACEMENT CHARACTER}"'),
    ],
)
def test_the_field_at_fault_and_what_was_expected_are_named(body: bytes, reason: str) -> None:
    assert reason_of(ACQUIRE, body) == reason


@pytest.mark.parametrize(
    "body",
    [
        b"hello",
        b"{",
        b'{"messages":NaN}',
        b'{"messages":1}x',
        b"{'messages':1}",
        b"\xef\xbb\xbf{}",
        b"\x00",
    ],
)
def test_what_is_no_json_is_told_so(body: bytes) -> None:
    assert reason_of(ACQUIRE, body).startswith("body: expected JSON in UTF-8, got ")


def test_a_number_of_thousands_of_digits_is_refused_in_few_words() -> None:
    reason = reason_of(ACQUIRE, b'{"messages":' + b"9" * 5000 + b"}")

    assert reason == f"messages: {COUNT}, got {'9' * 60}..."


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b'{"messages":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
    ],
)
def test_deep_nesting_is_refused(body: bytes) -> None:
    reason = reason_of(ACQUIRE, body)

    assert reason == "body: expected a JSON object, got one that is nested too deeply"


@pytest.mark.parametrize("body", [b"[" * 1_000_000, b'{"messages":' * 200_000])
def test_endless_brackets_are_refused(body: bytes) -> None:
    assert len(body) > OBJECT_BYTES_MAX
    assert len(reason_of(ACQUIRE, body)) < 200


def test_a_long_name_of_an_unknown_field_is_cut() -> None:
    reason = reason_of(ACQUIRE, b'{"' + b"x" * 1000 + b'":1}')

    assert reason == f"{'x' * 60}...: unknown field; expected one of {FIELDS}"


def test_a_good_body_is_read_and_what_it_does_not_say_stays_unsaid() -> None:
    body = ACQUIRE.decode(b'{"group":"gold","bytes":0}')

    assert msgspec.json.encode(body) == b'{"group":"gold","bytes":0}'
    # Unsaid is not the same as 1.
    assert body.attempt is UNSET


@pytest.mark.parametrize(
    ("body", "field", "got"),
    [
        (b'{"publish":{"messages":0}}', "publish.messages", "0"),
        (b'{"publish":{"messages":-3}}', "publish.messages", "-3"),
        (b'{"dispatch":{"bytes":0.0}}', "dispatch.bytes", "0.0"),
        (b'{"dispatch":{"bytes":"5M"}}', "dispatch.bytes", '"5M"'),
        (
            b'{"publish":{"messages":9223372036854775808}}',
            "publish.messages",
            "9223372036854775808",
        ),
        (b'{"publish":{"messages":1e30}}', "publish.messages", "1e30"),
        (b'{"publish":{"messages":true}}', "publish.messages", "true"),
    ],
)
def test_a_rate_that_is_none_is_named_with_its_path(body: bytes, field: str, got: str) -> None:
    reason = reason_of(GROUP, body)

    assert reason.startswith(f"{field}: {RATE}")
    assert reason.endswith(f", got {got}")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            b'{"publish":{"message":1}}',
            "publish.message: unknown field; expected one of messages, bytes",
        ),
        (b'{"publish":3}', "publish: expected a JSON object, got 3"),
        (b'{"publish":null}', "publish: expected a JSON object, got null"),
        (
            b'{"policy":"fair"}',
            'policy: expected null or one of max-min, residual, proportional, steal, got "fair"',
        ),
        (
            b'{"topic_split":"fair"}',
            'topic_split: expected null or one of shared, even, proportional, got "fair"',
        ),
        (b'{"blocked":"yes"}', 'blocked: expected true or false, got "yes"'),
        (
            b'{"quota":1}',
            "quota: unknown field; expected one of publish, dispatch, policy, topic_split, shadow, soft, "
            "blocked",
        ),
    ],
)
def test_a_fault_of_a_group_is_named(body: bytes, reason: str) -> None:
    assert reason_of(GROUP, body) == reason


def test_a_group_is_read_with_exact_numbers() -> None:
    body = GROUP.decode(
        b'{"publish":{"messages":9007199254740993,"bytes":5e6},'
        b'"dispatch":{"messages":0.5,"bytes":null},"policy":"steal","topic_split":"even","blocked":true}'
    )

    assert body.publish.messages == 9_007_199_254_740_993
    assert (body.publish.bytes, body.dispatch.messages, body.dispatch.bytes) == (5e6, 0.5, None)
    assert (body.policy, body.shadow, body.blocked) == (SharePolicyName.STEAL, UNSET, True)
    assert body.topic_split is TopicSplit.EVEN


@given(body=st.binary(max_size=200))
def test_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(BadBody):
        ACQUIRE.decode(body)
