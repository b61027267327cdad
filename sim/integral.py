"""A rate that changes in steps, and what flowed at it.

Law: exact in integers; `highest` is over every window of the length asked for, not only over those
that begin with a round.
"""

import numpy as np


class StepIntegral:
    """What has flowed since the last restart; with `is_kept`, every step is remembered."""

    __slots__ = ("_flowed", "_moments", "_rates", "_since", "is_unlimited", "rate")

    def __init__(self, *, is_kept: bool = False) -> None:
        self.rate = 0
        #: Whether it was without limit at some time since the last restart.
        self.is_unlimited = False
        self._since = 0
        self._flowed = 0
        self._moments: list[int] | None = [0] if is_kept else None
        self._rates = [0]

    def change(self, rate: int, now: int) -> None:
        """Let another rate flow from now on."""
        self._flowed += self.rate * (now - self._since)
        self.rate, self._since = rate, now
        if self._moments is not None:
            if self._moments[-1] == now:
                self._rates[-1] = rate
            else:
                self._moments.append(now)
                self._rates.append(rate)

    def change_upwards(self, rate: int, now: int) -> None:
        """As `change`; where nothing flowed before, the new rate has since the last change."""
        if self.rate == 0:
            self.rate = rate
        self.change(rate, now)

    def restart(self, now: int) -> int:
        """What has flowed since the last restart, in rate times ns."""
        flowed = self._flowed + self.rate * (now - self._since)
        self._flowed, self._since = 0, now
        return flowed

    def highest(self, window_ns: int, begin_ns: int, end_ns: int) -> tuple[float, int]:
        """The most that flowed in any window within begin and end, and when that window begins."""
        assert self._moments is not None, "the steps were not kept"
        moments = np.array([*self._moments, end_ns], dtype=np.float64)
        rates = np.array(self._rates, dtype=np.float64)
        flowed = np.concatenate([[0.0], np.cumsum(rates * np.diff(moments))])
        # The integral over a window is linear between the moments at which either end meets a step.
        starts = np.unique(np.concatenate([moments, moments - window_ns, [begin_ns]]))
        starts = starts[(starts >= begin_ns) & (starts + window_ns <= end_ns)]
        if len(starts) == 0:
            return 0.0, begin_ns
        windows = np.interp(starts + window_ns, moments, flowed) - np.interp(
            starts, moments, flowed
        )
        place = int(windows.argmax())
        return float(windows[place]), int(starts[place])
