"""A daemon that is a shadow as a whole (`http.shadow`): it decides and counts, and refuses nothing.

Laws: every decision is made, charged and counted as it would be; only its answer differs. What would have been
refused, or granted in part, is granted whole, with `"shadow"` and the header `X-Rgd-Shadow` that say what would have
been, and is counted (`rgd_http_shadow_total`). Requests that are at fault (400, 404) stay at fault.
"""

from collections import Counter
from enum import StrEnum
from typing import Final

from rgd.adapters.http.answers import AcquireAnswer, answer_of, backlog_answer
from rgd.adapters.http.reply import Reply, json_reply
from rgd.core.buckets.decision import Answer, Decision, OverBacklog, Request, TooLarge

HEADER: Final = "X-Rgd-Shadow"


class Shadowed(StrEnum):
    """What would have been answered."""

    REFUSED = "refused"
    #: Granted in part.
    PARTIAL = "partial"
    TOO_LARGE = "too_large"
    BACKLOG = "backlog"
    #: `http.ungoverned` is `deny`.
    UNGOVERNED = "ungoverned"
    #: No policies are known.
    UNKNOWN = "unknown"


class Shadow:
    """Answers in place of refusals, and their counts."""

    def __init__(self, *, denies_ungoverned: bool) -> None:
        self._denies_ungoverned = denies_ungoverned
        self.counts: Counter[Shadowed] = Counter(dict.fromkeys(Shadowed, 0))

    def answer(self, request: Request, answer: Answer) -> AcquireAnswer:
        """Grant it whole, and say what would have been."""
        shadowed = self._shadowed(request, answer)
        if shadowed is None:
            assert isinstance(answer, Decision)
            return answer_of(answer)
        return self.granted(shadowed, request.messages, request.bytes, answer)

    def granted(
        self, shadowed: Shadowed, messages: int, size: int, answer: Answer
    ) -> AcquireAnswer:
        """Count it, and grant these amounts."""
        self.counts[shadowed] += 1
        told = AcquireAnswer(granted=False, messages=0, bytes=0)
        if isinstance(answer, Decision):
            told = answer_of(answer)
        elif isinstance(answer, OverBacklog):
            told = backlog_answer(answer)
        elif isinstance(answer, TooLarge):
            told.limited_by, told.group = answer.level, answer.group
            told.dimension = answer.dimension
        told.granted, told.messages, told.bytes, told.shadow = True, messages, size, shadowed
        return told

    def shadowed_lease(self, answer: Answer) -> Shadowed | None:
        """What would have been answered to a caller that leases; None: it got what it wants."""
        if isinstance(answer, Decision) and answer.granted and answer.governed:
            return None if answer.limited_by is None else Shadowed.PARTIAL
        return self._shadowed(Request(), answer)

    def _shadowed(self, request: Request, answer: Answer) -> Shadowed | None:
        if isinstance(answer, Decision):
            if not answer.governed:
                return Shadowed.UNGOVERNED if self._denies_ungoverned else None
            if not answer.granted:
                return Shadowed.REFUSED
            is_whole = (answer.messages, answer.bytes) == (request.messages, request.bytes)
            return None if is_whole else Shadowed.PARTIAL
        if isinstance(answer, TooLarge):
            return Shadowed.TOO_LARGE
        return Shadowed.BACKLOG if isinstance(answer, OverBacklog) else Shadowed.UNKNOWN


def shadow_reply(answer: AcquireAnswer) -> Reply:
    """The reply to a single question."""
    if answer.shadow is None:
        return json_reply(answer)
    return json_reply(answer, headers={HEADER: answer.shadow})
