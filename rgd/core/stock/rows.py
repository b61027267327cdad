"""One stock broker's usage of each of its groups, by its last two reports.

In shares, the larger of a row's last two reports counts. A limit of one calculation is measured in
the next period and reported in the one after, so a broker's usage has two interleaved series; where
there are several brokers, nothing makes the two equal, and their sum goes up and down each period.

Why plain tuples of numbers: the garbage collector passes over them. Of other objects it looks at all at once, for 20 to
90 ms with 1,000 brokers of 40 groups.
"""

from collections.abc import Iterator
from typing import Final

from rgd.core.policies.model import GroupKey
from rgd.core.units import COUNT_MAX, Pair

#: Whole units of a stock period; None: not known yet.
Usage = Pair | None

#: Messages and bytes as they are kept, at most `COUNT_MAX`: more is nonsense.
_Numbers = tuple[int, int]
_UNKNOWN: Final = (-1, -1)


class BrokerRows:
    """The rows of one broker."""

    def __init__(self) -> None:
        #: By the last report, and by the one before.
        self._rows: dict[GroupKey, tuple[int, int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: GroupKey) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._rows)

    def now(self, key: GroupKey) -> Usage:
        """What the last report said."""
        return _usage(self._rows[key][:2])

    def counted(self, key: GroupKey) -> Usage:
        """What counts in shares; 0 at once, because Pulsar reports a drop to 0 periods later."""
        now, before = self.now(key), _usage(self._rows[key][2:])
        if now is None or before is None or not any(now):
            return now
        return Pair(max(now.messages, before.messages), max(now.bytes, before.bytes))

    def add(self, key: GroupKey, usage: Usage) -> Usage:
        """Add a row; returns the usage as it is kept."""
        self._rows[key] = (*_numbers(usage), *_UNKNOWN)
        return self.now(key)

    def report(self, key: GroupKey, usage: Usage) -> Usage:
        """Note a further report, None: it says that nothing changed; returns the usage as it is kept.

        A second report without amounts, where none came before, is taken for one of no use: a stock broker repeats
        "unchanged" for five periods, and one that uses something changes it, because its limit follows what we use.
        """
        if usage is None:
            usage = self.now(key) or Pair()
        self._rows[key] = (*_numbers(usage), *self._rows[key][:2])
        return self.now(key)

    def remove(self, key: GroupKey) -> Usage:
        """Remove a row; returns what its last report said."""
        return _usage(self._rows.pop(key)[:2])


def _usage(numbers: _Numbers) -> Usage:
    return None if numbers == _UNKNOWN else Pair(*numbers)


def _numbers(usage: Usage) -> _Numbers:
    return (
        _UNKNOWN if usage is None else (min(usage.messages, COUNT_MAX), min(usage.bytes, COUNT_MAX))
    )
