"""What middleware answers in place of the application that is limited."""

import json

from rgd.client.answers import AMOUNT_MAX, Answer


def refusal(answer: Answer) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a 429."""
    headers = {"Content-Type": "application/json", "Retry-After": str(wait_s_of(answer))}
    return headers, json.dumps({"reason": reason_of(answer)}).encode()


def wait_s_of(answer: Answer) -> int:
    """When to come back, in whole seconds, rounded up."""
    return max(1, -(-(answer.retry_after_ms or 0) // 1000))


def reason_of(answer: Answer) -> str:
    """Why it is refused, with the limit."""
    limit = answer.limited_by or answer.reason or "the rate limiter does not answer"
    return f"too many requests: {limit}"


def length_of(header: bytes | str) -> int:
    """The size that a `Content-Length` says; 0 where it says none."""
    # In its first 20 digits, because Python reads no number of thousands.
    return min(int(header[:20]), AMOUNT_MAX) if header.isascii() and header.isdigit() else 0
