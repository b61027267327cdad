"""Keeps the daemon running after unexpected exceptions, and stops it in an orderly way after too many.

Laws: an unexpected exception is logged with its traceback once for each code location, and counted each
time (`rgd_internal_errors_total{where}`). The work that raised it is dropped, and the rest continues. The daemon
reports itself as degraded for a minute after each one. It stops with a
goodbye when an invariant is broken or after more than `INTERNAL_ERRORS_MAX` within a minute.
Exceptions that a caller or a reader can cause at will are counted, but never stop it.

What the core raises is not contained: it ends the process (`rgd.app.daemon`).
"""

import asyncio
import traceback
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import wraps
from typing import Any, Final, TypeVar, cast

import structlog

from rgd.core.errors import InvariantBroken
from rgd.core.units import NS_PER_S, Nanos
from rgd.errors import InternalError, RgdError
from rgd.ports.metrics import Sample

#: Most internal errors within `WINDOW_S`: two a second, so that one error in each round of a second, which
#: loses a part of each round, does not stop the daemon.
INTERNAL_ERRORS_MAX: Final = 120
WINDOW_S: Final = 60

#: Most code locations whose traceback is logged; errors at further ones are only counted.
SITES_MAX: Final = 100

#: Longest traceback and longest description that are logged, in characters.
TRACEBACK_CHARS_MAX: Final = 8_000
ABOUT_CHARS_MAX: Final = 200

#: Pause before a task that raised continues. A task that always raises at once stops the daemon in
#: half a minute.
RESTART_PAUSE_S: Final = 0.25

_log = structlog.get_logger("rgd.daemon")

_View = TypeVar("_View", bound=Callable[..., Any])


class InternalErrors:
    """Counts, logs and bounds unexpected exceptions.

    Args:
        now: returns the time of a monotonic clock.
        on_end: called once with the reason when the daemon must stop.
    """

    def __init__(self, now: Callable[[], Nanos], on_end: Callable[[str], None]) -> None:
        self._now = now
        self._on_end = on_end
        #: Pause before a task that raised is begun again.
        self.restart_pause_s = RESTART_PAUSE_S
        #: All so far, by the part that met them.
        self.counts: Counter[str] = Counter()
        self._logged: set[tuple[object, ...]] = set()
        #: The times of the last ones that count against `INTERNAL_ERRORS_MAX`.
        self._recent: deque[Nanos] = deque(maxlen=INTERNAL_ERRORS_MAX + 1)
        self._last: tuple[str, Nanos] | None = None
        self._is_ending = False

    @property
    def trouble(self) -> str | None:
        """A description of the problem; None if there was no error within the last minute."""
        if self._last is None or self._now() - self._last[1] > WINDOW_S * NS_PER_S:
            return None
        count = self.counts.total()
        return (
            f"{count} since the start, the last one in {self._last[0]}; the log has each place once"
        )

    def note(self, where: str, error: Exception, *, about: str = "", may_end: bool = True) -> None:
        """Log and count one, and stop the daemon if it is one too many.

        Args:
            where: the part that met it; one of few names, because it labels a metric.
            error: the exception.
            about: the work in progress, for the log.
            may_end: False if an outsider can cause it at will.
        """
        now = self._now()
        self.counts[where] += 1
        self._last = (where, now)
        # All errors of a task group are raised at one location, so look at the errors inside.
        for leaf in _leaves(error):
            self._log_once(where, leaf, about)
            if isinstance(leaf, InvariantBroken):
                self._end(f"an invariant is broken: {leaf}")
        if not may_end:
            return
        self._recent.append(now)
        is_full = len(self._recent) > INTERNAL_ERRORS_MAX
        if is_full and now - self._recent[0] <= WINDOW_S * NS_PER_S:
            self._end(
                f"more than {INTERNAL_ERRORS_MAX} internal errors within {WINDOW_S} s, "
                f"the last one in {where}"
            )

    def figures(self, samples: Callable[[], Iterable[Sample]]) -> Iterator[Sample]:
        """The figures up to the one that cannot be read: the others are true all the same."""
        try:
            yield from samples()
        except Exception as error:  # noqa: BLE001 -- the boundary of a part of the figures
            self.note("metrics", error, may_end=False)

    async def keep(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run a task's work until it returns; after an exception restart it after a pause."""
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 -- the boundary of a task
                self.note(f"task_{what}", error)
                await asyncio.sleep(self.restart_pause_s)
            else:
                return

    def _log_once(self, where: str, error: Exception, about: str) -> None:
        place = (where, type(error), *_innermost(error))
        if place in self._logged or len(self._logged) >= SITES_MAX:
            return
        self._logged.add(place)
        text = "".join(traceback.format_exception(error))
        _log.error(
            "internal error",
            where=where,
            about=about[:ABOUT_CHARS_MAX],
            traceback=text[-TRACEBACK_CHARS_MAX:],
        )

    def _end(self, reason: str) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._on_end(reason)


def contained(where: str) -> Callable[[_View], _View]:
    """Count unexpected exceptions of a method in its object's `errors`, and raise `InternalError` in their place."""

    def wrap(view: _View) -> _View:
        @wraps(view)
        def viewed(owner: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return view(owner, *args, **kwargs)
            except Exception as error:
                if is_answer(error):
                    raise
                owner.errors.note(where, error, may_end=False)
                raise InternalError from error

        return cast("_View", viewed)

    return wrap


def is_answer(error: Exception) -> bool:
    """Whether it was raised on purpose for the caller; a broken invariant is always a bug."""
    return isinstance(error, RgdError) and not isinstance(error, InvariantBroken)


def _leaves(error: Exception) -> Iterator[Exception]:
    """The errors in an exception group, also in nested ones; otherwise the error itself."""
    if not isinstance(error, ExceptionGroup):
        yield error
        return
    for inner in error.exceptions:
        yield from _leaves(inner)


def _innermost(error: BaseException) -> tuple[str, int]:
    """File and line of where it was raised."""
    walked = traceback.walk_tb(error.__traceback__)
    places = [(frame.f_code.co_filename, line) for frame, line in walked]
    return places[-1] if places else ("", 0)
