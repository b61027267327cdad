"""Dictionary encoding of groups' names in reports (proto: Names).

Law: a receiver that has everything reads what was written; one that lacks a name reads the report as
one without rows, which the hash in it gives away, so that it asks for the full state, and each part of
a full state says every name it uses. A name is never taken for another one: numbers are given once in a
generation of a dictionary, and generations are counted once in an incarnation.

A name travels once after each full state and a number in a byte or so, and a receiver looks no names
up: its rows have the numbers, by which the usage map knows them. A sender has at most `NAMES_MAX` names, and begins again
with the next one; a receiver keeps those of `SENDERS_MAX` senders, and frees them when a sender is gone (`keep`).
"""

from collections import OrderedDict
from collections.abc import Container, Sequence
from typing import Final

import numpy as np

from rgd.core.exchange.columns import Codes, Flags, Ints, UsageColumns
from rgd.core.exchange.group_index import grown
from rgd.core.exchange.messages import ALL_ROWS, Sender, Span
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.wire import usage_pb2
from rgd.wire.checks import check_group_names
from rgd.wire.columns import as_counts, read_columns, write_columns
from rgd.wire.errors import Malformed, Oversize, Reason
from rgd.wire.keys import check_rows, kinds_of, read_kinds

#: Most names of one sender; its next generation begins when there would be more. More than one of
#: PIP-82's whole cluster (100,000 groups).
NAMES_MAX: Final = 262_144

#: A full state begins the next generation where more than this and twice its groups have numbers.
SPARE_NAMES: Final = 1_024

#: Most senders whose names are kept, each counted once for each shard; of more, who was silent longest has to say them again.
SENDERS_MAX: Final = 65_536

_NUMBERS: Final = ("numbers",)

#: A sender's name, and its shard's number and count as they are written.
_Key = tuple[str, int, int]


class NameEncoder:
    """The numbers that one sender gives its groups.

    Args:
        generation: the first one, greater than all that this sender used in this shard before.
        names_max: most numbers that one generation gives.
        spare_names: a full state begins the next generation where more than this and twice its groups have
            numbers.
    """

    def __init__(
        self, generation: int = 1, *, names_max: int = NAMES_MAX, spare_names: int = SPARE_NAMES
    ) -> None:
        self._generation = generation
        self._names_max = names_max
        self._spare_names = spare_names
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        #: [numbers] whether its name was said since the last full state began.
        self._is_said: Flags = np.zeros(64, np.bool_)

    def write(
        self, rows: UsageColumns, proto: usage_pb2.Report, span: Span | None = None
    ) -> UsageColumns:
        """Write groups and kinds of a report's rows, and the names that its readers may lack.

        Args:
            rows: the report's.
            proto: where to write; whether the report is `full` stands there.
            span: what part of a full state it is; None: it is none.

        Returns:
            The rows in the order in which they are written.

        Raises:
            Oversize: more than `ROWS_MAX` rows.
            Malformed: a row comes twice, or a name cannot be one.
        """
        check_rows(len(rows))
        numbers = self._numbers_of(rows.groups)
        missing = {} if numbers is not None else self._missing(rows.groups)
        check_group_names(list(missing))
        known = len(self._names)
        begins = span is not None and span.begin == 0
        # What was said since the last full state began was in use then or later.
        said = 0 if span == ALL_ROWS or not begins else np.count_nonzero(self._is_said)
        is_spare = begins and known > 2 * max(len(rows), said) + self._spare_names
        if is_spare or known + len(missing) > self._names_max:
            self._begin_next()
            missing = dict.fromkeys(rows.groups)
        if begins:
            self._is_said[:] = False
        for group in missing:
            self._numbers[group] = len(self._names)
            self._names.append(group)
        self._is_said = grown(self._is_said, len(self._names))
        if numbers is None or missing:
            numbers = self._numbers_of(rows.groups)
        assert numbers is not None, "every group has a number now"
        return self._write_keys(rows, numbers, proto)

    def _numbers_of(self, groups: Sequence[str]) -> Ints | None:
        """[rows] the number of each; None where one has none."""
        found = list(map(self._numbers.get, groups))
        return None if None in found else np.array(found, np.int64)

    def _missing(self, groups: Sequence[str]) -> dict[str, None]:
        return {group: None for group in groups if group not in self._numbers}

    def _begin_next(self) -> None:
        self._generation += 1
        self._numbers, self._names = {}, []
        self._is_said[:] = False

    def _write_names(self, numbers: Ints, proto: usage_pb2.Report) -> None:
        """Write names: of a full report all that it uses, of others what was not said."""
        proto.names.numbering = self._generation
        unsaid = numbers[~self._is_said[numbers]]
        self._is_said[unsaid] = True
        told = numbers if proto.full else unsaid
        proto.names.groups.extend(self._names[number] for number in told.tolist())
        write_columns(proto.names, _NUMBERS, np.diff(told, prepend=0))

    def _write_keys(
        self, rows: UsageColumns, numbers: Ints, proto: usage_pb2.Report
    ) -> UsageColumns:
        keys = 2 * numbers + rows.kinds
        order = np.argsort(keys, kind="stable")
        if (np.diff(keys[order]) == 0).any():
            raise Malformed(Reason.DUPLICATE, "rows: a group comes twice in one kind")
        rows, numbers = rows.take(order), numbers[order]
        is_new = np.diff(numbers, prepend=-1) != 0
        self._write_names(numbers[is_new], proto)
        proto.rows.kinds = kinds_of(rows.kinds, is_new)
        write_columns(proto.rows, _NUMBERS, np.diff(numbers[is_new], prepend=0))
        # A column of one 0 is left out like any other that is all 0: the kinds tell how many.
        return rows


class NameDecoders:
    """The names that every sender's numbers stand for, as far as they were received.

    Args:
        senders_max: most senders whose names are kept, each counted once for each shard.
    """

    def __init__(self, senders_max: int = SENDERS_MAX) -> None:
        self._senders_max = senders_max
        #: By sender and shard, because each sender numbers the groups of each shard separately.
        self._senders: OrderedDict[_Key, _Heard] = OrderedDict()

    def keep(self, brokers: Container[str]) -> None:
        """Forget the names of all other senders: they are gone."""
        for key in [key for key in self._senders if key[0] not in brokers]:
            del self._senders[key]

    def read(self, sender: Sender, report: usage_pb2.Report) -> tuple[NumberedNames, Codes] | None:
        """Group and kind of each row of a report; None where a name was missed.

        The report's shard must be checked.

        Raises:
            Oversize, Malformed: columns that do not fit together, or a name or number that cannot be
                one.
        """
        key = sender.broker, report.shard, report.shard_count
        heard = self._heard(key, sender, report.names)
        if heard is None:
            return None
        heard.take(report.names)
        return heard.keys(report.rows)

    def _heard(self, key: _Key, sender: Sender, names: usage_pb2.Names) -> "_Heard | None":
        known = self._senders.get(key)
        if known is None or not known.is_of(sender, names):
            if not len(names.groups):
                return None
            known = self._senders[key] = _Heard(sender, names)
        self._senders.move_to_end(key)
        if len(self._senders) > self._senders_max:
            # Who was silent longest says its names again.
            self._senders.popitem(last=False)
        return known


class _Heard:
    """What was received of one generation."""

    def __init__(self, sender: Sender, names: usage_pb2.Names) -> None:
        self._of = (sender.incarnation, names.numbering)
        #: By number; None where the name was not received. Only grows: rows that were read refer to it.
        self._names: list[str | None] = []
        #: [numbers] whether its name was received.
        self._is_known: Flags = np.zeros(64, np.bool_)
        #: The names that have a number.
        self._named: set[str] = set()
        #: The last report's numbers and kinds, and how they were written: most reports are of the same rows.
        self._latest: tuple[tuple[bytes, bytes], NumberedNames, Codes] | None = None

    def is_of(self, sender: Sender, names: usage_pb2.Names) -> bool:
        """Whether these names belong to the same generation."""
        return self._of == (sender.incarnation, names.numbering)

    def take(self, names: usage_pb2.Names) -> None:
        """Take names in."""
        count = len(names.groups)
        if not count:
            return
        check_rows(count)
        numbers = _read_numbers(names, count)
        groups = list(names.groups)
        check_group_names(groups)
        missing = int(numbers[-1]) + 1 - len(self._names)
        if missing > 0:
            self._names.extend([None] * missing)
            self._is_known = grown(self._is_known, len(self._names))
        for number, group in zip(numbers.tolist(), groups, strict=True):
            before = self._names[number]
            if before is None and group not in self._named:
                self._names[number] = group
                self._is_known[number] = True
                self._named.add(group)
            elif before is None:
                raise Malformed(Reason.DUPLICATE, "names: a group has two numbers")
            elif before != group:
                raise Malformed(Reason.DUPLICATE, f"names: {number} stands for two groups")

    def keys(self, proto: usage_pb2.UsageColumns) -> tuple[NumberedNames, Codes] | None:
        """Group and kind of each row; None where a number has no name yet."""
        written = (proto.numbers, proto.kinds)
        if self._latest is not None and self._latest[0] == written:
            return self._latest[1:]
        count = len(proto.kinds)
        check_rows(count)
        place, kinds = read_kinds(proto, count)
        numbers = _read_numbers(proto, count)
        if count and numbers[-1] >= len(self._names):
            return None
        if not self._is_known.take(numbers).all():
            return None
        if len(place) > count:
            numbers = numbers.take(place)
        names = NumberedNames(self._names, numbers)
        self._latest = written, names, kinds
        return names, kinds


def _read_numbers(proto: usage_pb2.UsageColumns | usage_pb2.Names, count: int) -> Ints:
    """Numbers in strictly ascending order, below `NAMES_MAX`."""
    written = proto.numbers
    if len(written) == count and written.isascii() and 0 not in written[1:]:
        # Every step is one byte, as in most reports.
        steps: Codes | Ints = np.frombuffer(written, np.uint8)
    else:
        steps = as_counts(read_columns([proto], _NUMBERS, [count])[0], "numbers")
        if len(steps) and (steps[1:].min(initial=1) < 1 or steps.max() > NAMES_MAX):
            raise Malformed(Reason.BAD_NUMBER, "numbers: expected them in strictly ascending order")
    numbers: Ints = np.cumsum(steps, dtype=np.int64)
    if len(numbers) and numbers[-1] >= NAMES_MAX:
        raise Oversize("numbers", int(numbers[-1]), NAMES_MAX)
    return numbers
