"""Numbers in place of groups' names in reports (proto: Names).

Law: a receiver that has everything reads what was written; one that lacks a name reads the report as
one without rows, which the hash in it gives away, so that it asks for the full state, and a full
report says every name it uses. A name is never taken for another one: numbers are given once in a
numbering, and numberings once in an incarnation.

A name travels once and a number in a byte or so, and a receiver looks no names up: as long as a
speaker tells of the same groups, it gets the very same tuple of names (which the usage map knows by).
Each table has a limit, and what does not fit is begun anew.
"""

from collections import OrderedDict
from typing import Final

import numpy as np

from rgd.core.exchange.columns import FEW_ROWS, Codes, Ints, UsageColumns
from rgd.core.exchange.messages import Speaker
from rgd.wire import usage_pb2
from rgd.wire.checks import check_count, check_group_names
from rgd.wire.columns import as_counts, read_columns, write_columns
from rgd.wire.errors import Malformed, Oversize, Reason
from rgd.wire.keys import check_rows, kinds_of, read_kinds

#: Most names of one speaker; its next numbering begins when there would be more.
NAMES_MAX: Final = 131_072

#: A full report begins the next numbering where more than this and twice its groups have numbers.
SPARE_NAMES: Final = 1_024

#: Most speakers whose names are kept; of more, who was silent longest has to say them again.
SPEAKERS_MAX: Final = 1_024

_NUMBERS: Final = ("numbers",)

_Keys = tuple[bytes, bytes]


class Numbering:
    """The numbers that one speaker gives its groups."""

    def __init__(self) -> None:
        self._numbering = 1
        self._numbers: dict[str, int] = {}
        #: Numbers below this have been told with their names.
        self._told = 0

    def write(self, rows: UsageColumns, report: usage_pb2.Report) -> UsageColumns:
        """Write groups and kinds of a report's rows, and the names that its readers may lack.

        Returns:
            The rows in the order in which they are written.

        Raises:
            Oversize: more than `ROWS_MAX` rows.
            Malformed: a row comes twice, or a name cannot be one.
        """
        check_rows(len(rows))
        groups = dict.fromkeys(rows.groups)
        if self._has_too_many(groups, is_full=report.full):
            self._numbering += 1
            self._numbers = {}
            self._told = 0
        fresh = [group for group in groups if group not in self._numbers]
        check_group_names(fresh)
        for group in fresh:
            self._numbers[group] = len(self._numbers)
        self._write_names(report)
        return self._write_keys(rows, report.rows)

    def _has_too_many(self, groups: dict[str, None], *, is_full: bool) -> bool:
        known = len(self._numbers)
        if is_full and known > 2 * len(groups) + SPARE_NAMES:
            return True
        return known + len(groups) > NAMES_MAX and (
            known + sum(group not in self._numbers for group in groups) > NAMES_MAX
        )

    def _write_names(self, report: usage_pb2.Report) -> None:
        report.names.numbering = self._numbering
        first = 0 if report.full else self._told
        if first < len(self._numbers):
            report.names.first = first
            report.names.groups.extend(list(self._numbers)[first:])
        self._told = len(self._numbers)

    def _write_keys(self, rows: UsageColumns, proto: usage_pb2.UsageColumns) -> UsageColumns:
        numbers = np.array([self._numbers[group] for group in rows.groups], np.int64)
        keys = 2 * numbers + rows.kinds
        order = np.argsort(keys, kind="stable")
        if (np.diff(keys[order]) == 0).any():
            raise Malformed(Reason.DUPLICATE, "rows: a group comes twice in one kind")
        rows, numbers = rows.take(order), numbers[order]
        is_new = np.diff(numbers, prepend=-1) != 0
        proto.kinds = kinds_of(rows.kinds, is_new)
        write_columns(proto, _NUMBERS, np.diff(numbers[is_new], prepend=0))
        # A column of one 0 is left out like any other that is all 0: the kinds tell how many.
        return rows


class Numberings:
    """The names that every speaker's numbers stand for, as far as they were heard."""

    def __init__(self) -> None:
        self._speakers: OrderedDict[str, _Heard] = OrderedDict()

    def read(
        self, speaker: Speaker, report: usage_pb2.Report
    ) -> tuple[tuple[str, ...], Codes] | None:
        """Group and kind of each row of a report; None where a name was missed.

        Raises:
            Malformed: columns that do not fit together, or a name or number that cannot be one.
        """
        heard = self._heard(speaker, report.names)
        if heard is None:
            return None
        heard.take(report.names)
        return heard.keys(report.rows)

    def _heard(self, speaker: Speaker, names: usage_pb2.Names) -> "_Heard | None":
        known = self._speakers.get(speaker.broker)
        if known is None or not known.is_of(speaker, names):
            if names.first or not names.groups:
                return None
            known = self._speakers[speaker.broker] = _Heard(speaker, names)
            if len(self._speakers) > SPEAKERS_MAX:
                self._speakers.popitem(last=False)
        self._speakers.move_to_end(speaker.broker)
        return known


class _Heard:
    """What was heard of one numbering."""

    def __init__(self, speaker: Speaker, names: usage_pb2.Names) -> None:
        self._of = (speaker.incarnation, names.numbering)
        self._names: list[str] = []
        #: The last large report's groups and kinds, by how they were written: what is said early, of
        #: few groups between two rounds, is not worth forgetting it.
        self._latest: tuple[_Keys, tuple[str, ...], Codes] | None = None

    def is_of(self, speaker: Speaker, names: usage_pb2.Names) -> bool:
        """Whether these names belong to the same numbering."""
        return self._of == (speaker.incarnation, names.numbering)

    def take(self, names: usage_pb2.Names) -> None:
        """Take names in."""
        if not names.groups:
            return
        first, groups = check_count(names.first, "first"), list(names.groups)
        if first + len(groups) > NAMES_MAX:
            raise Oversize("names", first + len(groups), NAMES_MAX)
        if first > len(self._names):
            # Some before them were missed; the next full report says all.
            return
        check_group_names(groups)
        self._names[first : first + len(groups)] = groups
        if len(set(self._names)) < len(self._names):
            self._names = []
            raise Malformed(Reason.DUPLICATE, "names: a group has two numbers")
        self._latest = None

    def keys(self, proto: usage_pb2.UsageColumns) -> tuple[tuple[str, ...], Codes] | None:
        """Group and kind of each row; None where a number has no name yet."""
        written = (proto.numbers, proto.kinds)
        if self._latest is not None and self._latest[0] == written:
            return self._latest[1:]
        check_rows(len(proto.kinds))
        place, kinds = read_kinds(proto, len(proto.kinds))
        numbers = _read_numbers(proto)
        if len(numbers) and numbers[-1] >= len(self._names):
            return None
        names = self._names
        groups = tuple(names[number] for number in numbers[place].tolist())
        if len(groups) > FEW_ROWS:
            self._latest = written, groups, kinds
        return groups, kinds


def _read_numbers(proto: usage_pb2.UsageColumns) -> Ints:
    steps = as_counts(read_columns(proto, _NUMBERS, len(proto.kinds))[0], "numbers")
    if len(steps) and (steps[1:].min(initial=1) < 1 or steps.max() > NAMES_MAX):
        raise Malformed(Reason.BAD_NUMBER, "numbers: expected them in strictly ascending order")
    numbers: Ints = np.cumsum(steps)
    return numbers
