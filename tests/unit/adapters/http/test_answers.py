"""The JSON and the headers of an answer. Not covered: whether the decision is right."""

import pytest

from rgd.adapters.http.answers import FIELD_INTEGER_MAX, refusal_headers
from rgd.core.buckets.decision import Decision, Level
from rgd.core.units import Dimension, Kind


def refused(*, retry_after_ms: int = 250, quota: int = 1000, remaining: int = 4) -> Decision:
    return Decision(
        granted=False,
        messages=0,
        bytes=0,
        limited_by=Level.RESOURCE_GROUP,
        group="gold",
        dimension=Dimension.BYTES,
        retry_after_ms=retry_after_ms,
        quota=quota,
        remaining=remaining,
    )


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
