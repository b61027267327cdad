"""A question that waits for its answer."""

from collections.abc import Callable

from rgd.client.answers import Answer, Question

OnAnswer = Callable[[Answer], None]


class Ticket:
    """A question that waits.

    Args:
        question: what is asked.
        deadline: when it is answered at the latest, monotonic ns.
        on_answer: told of the answer, once.
    """

    __slots__ = (
        "deadline",
        "is_done",
        "is_leased",
        "on_answer",
        "question",
        "sends",
        "was_granted",
    )

    def __init__(self, question: Question, deadline: int, on_answer: OnAnswer) -> None:
        self.question = question
        self.deadline = deadline
        self.on_answer = on_answer
        #: Whether it waited for a lease: a refusal then holds for the callers after it.
        self.is_leased = False
        #: How often it was sent, or waited for a renewal.
        self.sends = 0
        #: Answered, or nobody waits for it any longer.
        self.is_done = False
        #: Whether its caller was told that it may pass.
        self.was_granted = False

    def answer(self, answer: Answer) -> None:
        """Tell the caller."""
        self.is_done = True
        self.was_granted = answer.granted
        self.on_answer(answer)
