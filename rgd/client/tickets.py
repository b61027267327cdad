"""A question that waits for its answer."""

from collections.abc import Callable
from dataclasses import dataclass

from rgd.client.answers import Answer, Question

OnAnswer = Callable[[Answer], None]


@dataclass(slots=True, eq=False)
class Ticket:
    """A question that waits."""

    question: Question
    #: When it is answered at the latest, monotonic ns.
    deadline: int
    #: Told of the answer, once.
    on_answer: OnAnswer
    #: Whether it waited for a lease: a refusal then holds for the callers after it.
    is_leased: bool = False
    #: How often it was sent, or waited for a renewal.
    sends: int = 0
    #: Answered, or nobody waits for it any longer.
    is_done: bool = False
    #: Whether its caller was told that it may pass.
    was_granted: bool = False

    def answer(self, answer: Answer) -> None:
        """Tell the caller."""
        self.is_done = True
        self.was_granted = answer.granted
        self.on_answer(answer)
