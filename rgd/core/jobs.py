"""Long work in slices: a generator does a bounded amount of work between two `yield`s.

Law: no clock and no chance decide where a slice ends, so the same events give the same slices. A job
that raises begins again: what it did before stays done, and its slices can be done twice.
"""

from collections.abc import Callable, Iterator

#: Begins the work; each `next` does a slice, and the last one ends the iterator.
Slices = Callable[[], Iterator[None]]


class Job:
    """One kind of long work, of which at most one run is under way."""

    def __init__(self, slices: Slices) -> None:
        self._begin = slices
        self._run: Iterator[None] | None = None

    @property
    def is_pending(self) -> bool:
        """Whether slices are left."""
        return self._run is not None

    def begin(self) -> None:
        """Begin, or begin again where a run is under way."""
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
