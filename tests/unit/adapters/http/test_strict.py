"""Reading bodies: every refusal names the field and what was expected.

Not covered: what a good body means (test_acquire, test_groups, test_pulsar_admin).
"""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.http.bodies import AcquireBody, GroupBody
from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.strict import OBJECT_BYTES_MAX, BodyDecoder
from rgd.core.units import COUNT_MAX

ACQUIRE = BodyDecoder(AcquireBody)

COUNT = f"expected an integer from 0 to {COUNT_MAX}"
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


@given(body=st.binary(max_size=200))
def test_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(BadBody):
        ACQUIRE.decode(body)
