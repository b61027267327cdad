"""The pauses between retries.

Law: pauses grow from `first_s` and double up to `pause_s_max`. None is longer, and jitter shortens none
by more than half. With jitter, daemons that lost the same broker do not return in step.
The caller retries, and decides about success.
"""

import random


class Backoff:
    """A sequence of growing pauses, bounded.

    Args:
        first_s: the first pause, in seconds, before jitter.
        pause_s_max: the longest pause, in seconds.
        dice: decides by how much, up to a half, each pause is shortened.
    """

    def __init__(self, *, first_s: float, pause_s_max: float, dice: random.Random) -> None:
        assert 0 < first_s <= pause_s_max
        self._first_s = first_s
        self._pause_s_max = pause_s_max
        self._dice = dice
        self._unjittered_s = first_s

    @classmethod
    def with_own_dice(cls, *, first_s: float, pause_s_max: float) -> "Backoff":
        """One whose jitter nobody repeats; it is no secret either."""
        return cls(first_s=first_s, pause_s_max=pause_s_max, dice=random.Random())  # noqa: S311

    def next_s(self) -> float:
        """The next pause, in seconds."""
        pause_s = self._unjittered_s
        self._unjittered_s = min(2 * pause_s, self._pause_s_max)
        return pause_s * (1 - self._dice.random() / 2)

    def reset(self) -> None:
        """Begin with the first pause again after a success."""
        self._unjittered_s = self._first_s
