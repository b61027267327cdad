"""Several kinds of long work take turns, so that a wake ends after a slice of one of them.

Law: a kind that has work is skipped at most as often as there are other kinds. One wake may do
several small slices. The next wake follows at once and continues with the next kind.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from rgd.core.broker.effects import Effect
from rgd.core.units import Nanos

#: A wake ends after work on so many groups, which is less than a full slice of any kind.
WAKE_GROUPS: Final = 64

#: So many rows count as the work on a group: a slice may be of one group of 1,000 brokers.
GROUP_ROWS: Final = 16

Slice = Callable[[Nanos], Iterable[Effect]]


class RoundRobin:
    """The order in which kinds of work take turns.

    Args:
        kinds: functions that each do a slice of their work, if there is some.
        groups_worked: returns how many groups the slices of all kinds have worked on since the
            start.
    """

    def __init__(self, kinds: Iterable[Slice], groups_worked: Callable[[], int]) -> None:
        self._kinds = deque(kinds)
        self._groups_worked = groups_worked

    def take(self, now: Nanos) -> Iterator[Effect]:
        """Do slices of one kind after another, until `WAKE_GROUPS` or each kind had one."""
        enough = self._groups_worked() + WAKE_GROUPS
        for _ in range(len(self._kinds)):
            work = self._kinds[0]
            self._kinds.rotate(-1)
            yield from work(now)
            if self._groups_worked() >= enough:
                break
