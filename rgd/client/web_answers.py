"""What middleware asks for a request, and what it answers in place of the application that is limited.

Law: what concerns this request alone is answered to its caller: a limit refuses it now (429), it is more than could ever
be granted (413), or its name has no limit and has to have one (403). A token or a name at fault is raised, whatever
`when_away` says: that is no outage, it lasts until somebody mends it.
"""

import json
from typing import Final

from rgd.client.answers import AMOUNT_MAX, Answer
from rgd.client.blocking import BlockingLimiter
from rgd.client.client import Limiter
from rgd.client.errors import QuestionRefused

#: Statuses with which the daemon refuses to decide because of this request.
_OF_REQUEST: Final = frozenset({403, 413})


async def ask(limiter: Limiter, content_length: bytes | str, wait_s: float) -> Answer:
    """May a request of this `Content-Length` pass?

    Raises:
        QuestionRefused: the name or the token is at fault.
        ClientClosed: the client is not open.
    """
    try:
        return await limiter.acquire(1, _size_of(content_length), wait_s=wait_s)
    except QuestionRefused as fault:
        return _answer_to(fault)


def ask_blocking(limiter: BlockingLimiter, content_length: bytes | str, wait_s: float) -> Answer:
    """The same by a thread; see `ask`."""
    try:
        return limiter.acquire(1, _size_of(content_length), wait_s=wait_s)
    except QuestionRefused as fault:
        return _answer_to(fault)


def _answer_to(fault: QuestionRefused) -> Answer:
    if fault.status not in _OF_REQUEST:
        raise fault
    return Answer(granted=False, status=fault.status, reason=fault.reason)


def refusal(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body of a refusal."""
    headers = {"Content-Type": "application/json"}
    body = json.dumps({"reason": reason_of(answer)}).encode()
    if answer.status in _OF_REQUEST:
        return answer.status, headers, body
    # In whole seconds, rounded up.
    wait_s = max(1, -(-(answer.retry_after_ms or 0) // 1000))
    return 429, {**headers, "Retry-After": str(wait_s)}, body


def reason_of(answer: Answer) -> str:
    """Why it is refused: the limit, or the daemon's words."""
    if answer.status in _OF_REQUEST:
        return answer.reason or "refused"
    limit = answer.limited_by or answer.reason or "the rate limiter does not answer"
    return f"too many requests: {limit}"


def _size_of(header: bytes | str) -> int:
    """The size that a `Content-Length` says; 0 where it says none."""
    # Some servers pass on what stands around the digits. Python reads no number of thousands of them.
    digits = (header.encode() if isinstance(header, str) else header).strip(b" \t").lstrip(b"0")
    return min(int(digits[:20]), AMOUNT_MAX) if digits.isdigit() else 0
