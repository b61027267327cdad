"""Long work in slices: a generator does a bounded amount of work between two `yield`s.

Law: the end of a slice depends on no clock and no randomness, so the same events give the same
slices. A job that raises starts again: completed work stays done, and its slices may be repeated.
"""

from collections.abc import Callable, Iterator

#: Starts the work; each `next` does a slice, and the last one ends the iterator.
Slices = Callable[[], Iterator[None]]


class Job:
    """One kind of long work, with at most one run in progress."""

    def __init__(self, slices: Slices) -> None:
        self._begin = slices
        self._run: Iterator[None] | None = None

    @property
    def is_pending(self) -> bool:
        """Whether slices are left."""
        return self._run is not None

    def begin(self) -> None:
        """Start a run; a run in progress is dropped and started again."""
        self._run = self._begin()

    def step(self) -> None:
        """Do the next slice, if any is left."""
        if self._run is None:
            return
        try:
            next(self._run)
        except StopIteration:
            self._run = None
        except Exception:
            self.begin()
            raise
