"""Kinds of long work take turns, so that a wake ends after a slice of one of them.

Law: a kind that has work is not passed over more often than there are other kinds. Slices of few groups leave
room for one another in one wake; the next wake, which is at once, goes on with the next kind.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from rgd.core.broker.effects import Effect
from rgd.core.units import Nanos

#: A wake ends after work on so many groups; less than a slice of any kind has.
WAKE_GROUPS: Final = 64

Slice = Callable[[Nanos], list[Effect]]


class Turns:
    """Whose turn it is.

    Args:
        kinds: each does a slice of its work, if there is some.
        groups_worked: how many groups slices of any kind were about, since the start.
    """

    def __init__(self, kinds: Iterable[Slice], groups_worked: Callable[[], int]) -> None:
        self._kinds = deque(kinds)
        self._groups_worked = groups_worked

    def take(self, now: Nanos) -> list[Effect]:
        """Do slices of one kind after another until it is enough for one wake."""
        effects: list[Effect] = []
        enough = self._groups_worked() + WAKE_GROUPS
        for _ in range(len(self._kinds)):
            work = self._kinds[0]
            self._kinds.rotate(-1)
            effects += work(now)
            if self._groups_worked() >= enough:
                break
        return effects
