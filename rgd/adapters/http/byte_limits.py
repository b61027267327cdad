"""How many bytes the door may hold for its callers: bodies that arrive, answers that nobody reads.

Laws: each budget is one number for all connections together, and what happens at it is said here. A
body beyond the budget is refused with a word (503); an unread answer beyond it costs the connection
that has let its answer wait longest; one answer may be larger by itself while no other waits. The first bytes of each body are free, so that callers who hold
the whole budget with large bodies that do not arrive keep nobody from asking an ordinary question.

It knows no HTTP library: whoever reads bodies and writes answers tells how many bytes there are.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from rgd.adapters.http.errors import Overloaded

#: So much of each body is free; the number of connections bounds it.
FREE_BYTES: Final = 128 << 10


class BodyBudget:
    """The bytes of bodies that are being read or answered, beyond those that are free."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.used = 0


class HeldBody:
    """The bytes of one body."""

    __slots__ = ("_budget", "taken")

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        #: Bytes that the budget has given.
        self.taken = 0

    def grow_to(self, count: int) -> None:
        """Take what a body of so many bytes lacks, until it is done with.

        Raises:
            Overloaded: there are not so many left; nothing was taken.
        """
        budget = self._budget
        more = max(0, count - FREE_BYTES - self.taken)
        if more and budget.used + more > budget.bytes_max:
            raise Overloaded(
                f"bodies of {budget.used} bytes are in work already, of at most {budget.bytes_max} "
                "(http.bodies_max_bytes); come back"
            )
        budget.used += more
        self.taken += more

    def free(self, _work: object = None) -> None:
        """Give the bytes back. Idempotent; may be called where work ends (`asyncio.Task.add_done_callback`)."""
        self._budget.used -= self.taken
        self.taken = 0


class UnreadAnswers:
    """The bytes of answers that peers have not read yet."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        #: By the owner of the connection, longest waiting first: bytes, and how to abort it.
        self._waiting: OrderedDict[object, tuple[int, Callable[[], None]]] = OrderedDict()
        self.total = 0

    def add(self, owner: object, count: int, abort: Callable[[], None]) -> None:
        """Count an answer that waits; those that wait longest are aborted while all are too many.

        One that is too large by itself may wait alone; nobody else is aborted for it.

        Args:
            owner: of the connection; it has at most one answer that waits.
            count: bytes that wait.
            abort: closes the connection at once and drops what was not read.
        """
        self._waiting[owner] = (count, abort)
        self.total += count
        while self.total > self._bytes_max and len(self._waiting) > 1:
            _, (freed, end) = self._waiting.popitem(last=count > self._bytes_max)
            self.total -= freed
            end()

    def remove(self, owner: object) -> None:
        """The answer was read, or its connection is gone. Idempotent."""
        count, _ = self._waiting.pop(owner, (0, None))
        self.total -= count
