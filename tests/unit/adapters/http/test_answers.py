"""The JSON and the headers of an answer. Not covered: whether the decision is right."""

import re

import msgspec
import pytest

from rgd.adapters.http.answers import (
    FIELD_INTEGER_MAX,
    answer_of,
    decision_reply,
    refusal_headers,
    too_large_reply,
)
from rgd.core.buckets.decision import Decision, Level, TooLarge
from rgd.core.units import Dimension, Kind

GRANTED = Decision(granted=True, messages=3, bytes=70)


def refused(
    *,
    level: Level = Level.RESOURCE_GROUP,
    retry_after_ms: int = 250,
    quota: int = 1000,
    remaining: int = 4,
) -> Decision:
    return Decision(
        granted=False,
        messages=0,
        bytes=0,
        limited_by=level,
        group="gold" if level is Level.RESOURCE_GROUP else None,
        dimension=Dimension.BYTES,
        retry_after_ms=retry_after_ms,
        quota=quota,
        remaining=remaining,
    )


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        pytest.param(GRANTED, {"granted": True, "messages": 3, "bytes": 70}, id="whole"),
        pytest.param(
            Decision(granted=True, messages=3, bytes=70, governed=False),
            {"granted": True, "messages": 3, "bytes": 70, "governed": False},
            id="ungoverned",
        ),
        pytest.param(
            Decision(
                granted=True,
                messages=2,
                bytes=70,
                limited_by=Level.RESOURCE_GROUP,
                group="gold",
                dimension=Dimension.MESSAGES,
                retry_after_ms=12,
            ),
            {
                "granted": True,
                "messages": 2,
                "bytes": 70,
                "limited_by": "resource_group",
                "group": "gold",
                "dimension": "messages",
                "retry_after_ms": 12,
            },
            id="cut",
        ),
        pytest.param(
            refused(level=Level.TOPIC, retry_after_ms=0),
            {
                "granted": False,
                "messages": 0,
                "bytes": 0,
                "limited_by": "topic",
                "dimension": "bytes",
                "retry_after_ms": 0,
            },
            id="refused by a topic's limit",
        ),
    ],
)
def test_an_answer_tells_exactly_what_there_is_to_tell(
    decision: Decision, told: dict[str, object]
) -> None:
    assert msgspec.json.decode(msgspec.json.encode(answer_of(decision))) == told


def test_a_grant_is_200_without_headers() -> None:
    reply = decision_reply(GRANTED, Kind.PUBLISH)

    assert (reply.status, dict(reply.headers)) == (200, {})


def test_a_refusal_is_429_with_the_headers_of_the_draft_and_the_older_ones() -> None:
    reply = decision_reply(refused(), Kind.DISPATCH)

    assert reply.status == 429
    assert dict(reply.headers) == {
        "Retry-After": "1",
        "RateLimit-Policy": '"gold/dispatch/bytes";q=1000;qu="content-bytes";w=1',
        "RateLimit": '"gold/dispatch/bytes";r=4;t=1',
        "RateLimit-Limit": "1000",
        "RateLimit-Remaining": "4",
        "RateLimit-Reset": "1",
    }


@pytest.mark.parametrize(
    ("milliseconds", "seconds"), [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60)]
)
def test_waits_are_rounded_up_to_whole_seconds(milliseconds: int, seconds: int) -> None:
    headers = refusal_headers(refused(retry_after_ms=milliseconds), Kind.PUBLISH)

    assert headers["Retry-After"] == headers["RateLimit-Reset"] == str(seconds)
    assert headers["RateLimit"].endswith(f";t={seconds}")


def test_numbers_fit_a_structured_field() -> None:
    headers = refusal_headers(
        refused(quota=9_000_000_000_000_000, remaining=9_000_000_000_000_000), Kind.PUBLISH
    )

    assert headers["RateLimit-Limit"] == headers["RateLimit-Remaining"] == str(FIELD_INTEGER_MAX)
    assert f"q={FIELD_INTEGER_MAX};" in headers["RateLimit-Policy"]
    assert f"r={FIELD_INTEGER_MAX};" in headers["RateLimit"]


@pytest.mark.parametrize("level", [Level.BROKER, Level.TOPIC, Level.SUBSCRIPTION])
def test_a_limit_beside_the_groups_is_named_by_its_level(level: Level) -> None:
    headers = refusal_headers(refused(level=level), Kind.PUBLISH)

    assert re.match(rf'"{level}/publish/bytes";', headers["RateLimit"])


def test_too_large_tells_the_most_that_could_be_asked() -> None:
    reply = too_large_reply(TooLarge(Level.RESOURCE_GROUP, "gold", Dimension.BYTES, 4096))

    assert reply.status == 413
    told = msgspec.json.decode(reply.body)
    assert told.pop("reason").startswith("bytes: expected at most 4096 at once")
    assert told == {
        "limited_by": "resource_group",
        "group": "gold",
        "dimension": "bytes",
        "most": 4096,
    }


def test_too_large_for_a_limit_beside_the_groups_names_no_group() -> None:
    reply = too_large_reply(TooLarge(Level.TOPIC, None, Dimension.MESSAGES, 5))

    told = msgspec.json.decode(reply.body)
    assert "the topic" in told["reason"]
    assert "group" not in told
