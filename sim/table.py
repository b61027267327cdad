"""The rounds of a run as one table: what the runner keeps, `--out` writes and the plots read.

A row is one broker in one group in one round. Rates are units per second over
the round, `share` is what was in force at its start, `part` the broker's
max-min part of what was truly wanted (never more than it wanted), so that
admitted / part is its ratio and parts sum to min(quota, wanted).

Law: writing and reading give the same table. Files are CSV with the columns'
names in the first line, readable by anything.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A broker whose part is less than so many units a second cannot be judged.
JUDGED_UNITS_MIN: Final = 1.0


class RoundRow(NamedTuple):
    """One broker in one group in one round."""

    round: int
    group: str
    broker: str
    #: Units per second.
    wanted: float
    admitted: float
    share: float
    part: float


@dataclass(frozen=True, slots=True, eq=False)
class RoundTable:
    """Rows as columns.

    Attributes:
        round: [rows] whole rounds since the start.
        group: [rows] names; `broker` likewise.
        wanted: [rows] units per second; `admitted`, `share`, `part` likewise.
    """

    round: Ints
    group: NDArray[np.str_]
    broker: NDArray[np.str_]
    wanted: Floats
    admitted: Floats
    share: Floats
    part: Floats

    @classmethod
    def of(cls, rows: Iterable[RoundRow]) -> Self:
        """Columns of single rows."""
        columns = list(zip(*rows, strict=True)) or [()] * len(RoundRow._fields)
        return cls(
            np.array(columns[0], np.int64),
            np.array(columns[1], np.str_),
            np.array(columns[2], np.str_),
            *(np.array(column, np.float64) for column in columns[3:]),
        )

    def __len__(self) -> int:
        return len(self.round)

    def of_group(self, group: str) -> Self:
        """The rows of one group."""
        return self._take(self.group == group)

    def between(self, first: int, end: int) -> Self:
        """The rows of the rounds from `first` up to but not at `end`."""
        return self._take((self.round >= first) & (self.round < end))

    def counted_from(self, first: int) -> Self:
        """The same rows, with the round `first` called 0."""
        return replace(self, round=self.round - first)

    @property
    def rounds(self) -> Ints:
        """Every round there is, in order."""
        return np.unique(self.round)

    @property
    def groups(self) -> list[str]:
        """Every group there is, in the order of names."""
        return [str(name) for name in np.unique(self.group)]

    @property
    def brokers(self) -> list[str]:
        """Every broker there is, in the order of names (those that end in numbers, by number)."""
        return sorted((str(name) for name in np.unique(self.broker)), key=_by_number)

    def grid(self, column: str) -> Floats:
        """One column of a table of one group, by round and broker; [rounds, brokers].

        NaN where a broker has no row in a round.
        """
        rounds, brokers = self.rounds, self.brokers
        places = {name: place for place, name in enumerate(brokers)}
        grid = np.full((len(rounds), len(brokers)), np.nan)
        columns = np.array([places[name] for name in self.broker.tolist()], np.int64)
        grid[np.searchsorted(rounds, self.round), columns] = getattr(self, column)
        return grid

    def lowest_ratio(self) -> Floats:
        """The least admitted / part of each round, NaN where nobody can be judged; [rounds]."""
        is_judged = self.part >= JUDGED_UNITS_MIN
        ratio = np.where(is_judged, self.admitted / np.where(is_judged, self.part, 1.0), np.inf)
        rounds = self.rounds
        lowest = np.full(len(rounds), np.inf)
        np.minimum.at(lowest, np.searchsorted(rounds, self.round), ratio)
        return np.where(np.isfinite(lowest), lowest, np.nan)

    def write(self, path: Path) -> None:
        """Write a CSV file."""
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(RoundRow._fields)
            writer.writerows(
                zip(*(getattr(self, name).tolist() for name in RoundRow._fields), strict=True)
            )

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a CSV file that `write` wrote."""
        with path.open(newline="") as file:
            return cls.of(_row_of(line) for line in csv.DictReader(file))

    def _take(self, places: NDArray[np.bool_]) -> Self:
        return type(self)(*(getattr(self, name)[places] for name in RoundRow._fields))


def _row_of(line: dict[str, str]) -> RoundRow:
    rates = (float(line[name]) for name in RoundRow._fields[3:])
    return RoundRow(int(line["round"]), line["group"], line["broker"], *rates)


def _by_number(name: str) -> tuple[str, int, str]:
    digits = len(name) - len(name.rstrip("0123456789"))
    number = int(name[-digits:]) if digits else -1
    return (name[: len(name) - digits], number, name)
