"""What both forms of the client do with an answer: raise what is no decision, and wait between attempts.

Laws: a caller who is willing to wait never waits longer than he said; he is not kept where the wait that
the daemon advises is longer, because it is likely to be refused again. Every further attempt says that it is one.
"""

from rgd.client.answers import Answer, Question, check_amounts
from rgd.client.errors import QuestionRefused

#: The daemon refuses to decide.
_FAULTS = frozenset({400, 401, 403, 404, 413})


def decided(answer: Answer) -> Answer:
    """The answer, where it is one.

    Raises:
        QuestionRefused: the daemon refuses to decide.
    """
    if answer.status in _FAULTS:
        raise QuestionRefused(answer.status, answer.reason or "")
    return answer


def unused_of(answer: Answer, messages: int | None, size: int | None) -> tuple[int, int]:
    """What of a grant was not used: at most all of it."""
    unused = answer.messages if messages is None else messages
    unused_bytes = answer.bytes if size is None else size
    check_amounts(unused, unused_bytes)
    return min(unused, answer.messages), min(unused_bytes, answer.bytes)


class Attempts:
    """One piece of work of a caller who may wait for it.

    Args:
        question: what is asked.
        wait_s: how long he waits for a grant; 0: one answer, whatever it is.
        now: monotonic ns.
    """

    __slots__ = ("_until", "question")

    def __init__(self, question: Question, wait_s: float, now: int) -> None:
        self.question = question
        self._until = now + int(wait_s * 1e9) if wait_s > 0 else None

    def within_ns(self, now: int) -> int | None:
        """The longest that the next attempt may take; None: as the client's settings say."""
        return None if self._until is None else max(0, self._until - now)

    def pause_s(self, answer: Answer, now: int) -> float | None:
        """How long to wait before the next attempt, in seconds; None: this answer is the last."""
        if self._until is None or answer.granted:
            return None
        pause_ns = (answer.retry_after_ms or 1) * 1_000_000
        if now + pause_ns >= self._until:
            return None
        self.question = self.question._replace(attempt=self.question.attempt + 1)
        return pause_ns / 1e9
