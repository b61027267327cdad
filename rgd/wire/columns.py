"""Rows of usage as columns, as reports and the usage log both carry them (proto: UsageColumns).

Law: `decode_rows(encode_rows(rows))` gives the rows back, and neither takes anything else: rows are
in the order of `row_key` (by group, publish before dispatch), a group has at most one row of each
kind, and a decoder meets as many numbers in each column as there are rows, or none where all are 0.

What was wanted is written as its difference to what was admitted, mostly 0. Groups are named in a
string table in front: numbers in place of names, with the names sent apart, are not in this version.
"""

from collections.abc import Iterable, Sequence
from operator import add, sub
from typing import Final, NamedTuple

from rgd.core.exchange.messages import UsageRow
from rgd.core.units import Kind, Pair
from rgd.wire.checks import check_counts, check_group
from rgd.wire.errors import Malformed, Oversize, Reason
from rgd.wire.usage_pb2 import UsageColumns

#: Most rows that one message or record may have; 5,000 groups (PIP-82's case) make 10,000.
ROWS_MAX: Final = 65_536

_BIT_OF: Final = {Kind.PUBLISH: 1, Kind.DISPATCH: 2}
_KINDS_OF: Final = {
    1: (Kind.PUBLISH,),
    2: (Kind.DISPATCH,),
    3: (Kind.PUBLISH, Kind.DISPATCH),
}


def row_key(row: UsageRow) -> tuple[str, int]:
    """What rows are ordered by."""
    return row.group, _BIT_OF[row.kind]


def encode_rows(rows: Sequence[UsageRow]) -> UsageColumns:
    """Write rows, which must be in the order of `row_key`.

    Raises:
        Oversize: more than `ROWS_MAX` rows.
        Malformed: a row comes twice or out of order, a name or number cannot be one.
    """
    _check_rows(len(rows))
    groups, kinds = _encode_keys(rows)
    rates = _encode_amounts([row.admitted for row in rows], [row.wanted for row in rows])
    totals = _encode_amounts(
        [row.admitted_total for row in rows], [row.wanted_total for row in rows]
    )
    return UsageColumns(
        groups=groups,
        kinds=kinds,
        topics=packed([row.topics for row in rows], "topics"),
        admitted_messages=rates.admitted_messages,
        admitted_bytes=rates.admitted_bytes,
        unmet_messages=rates.unmet_messages,
        unmet_bytes=rates.unmet_bytes,
        admitted_messages_total=totals.admitted_messages,
        admitted_bytes_total=totals.admitted_bytes,
        unmet_messages_total=totals.unmet_messages,
        unmet_bytes_total=totals.unmet_bytes,
    )


def decode_rows(columns: UsageColumns) -> tuple[UsageRow, ...]:
    """Read rows.

    Raises:
        Oversize: more than `ROWS_MAX` rows.
        Malformed: columns that do not fit together, or a name or number that cannot be one.
    """
    groups, kinds = _decode_keys(columns)
    count = len(groups)
    rates = _Amounts(
        columns.admitted_messages,
        columns.admitted_bytes,
        columns.unmet_messages,
        columns.unmet_bytes,
    )
    totals = _Amounts(
        columns.admitted_messages_total,
        columns.admitted_bytes_total,
        columns.unmet_messages_total,
        columns.unmet_bytes_total,
    )
    topics = unpacked(columns.topics, count, "topics")
    return tuple(
        map(
            UsageRow,
            groups,
            kinds,
            topics,
            *_decode_amounts(rates, count),
            *_decode_amounts(totals, count),
        )
    )


def packed(values: Sequence[int], what: str) -> Sequence[int]:
    """A column as it is written: checked, and nothing where all is 0."""
    return check_counts(values, what) if any(values) else ()


def filled(column: Sequence[int], count: int, what: str) -> list[int]:
    """One number for each of `count` rows, unchecked: a column left out is all 0."""
    if not column:
        return [0] * count
    if len(column) != count:
        raise Malformed(Reason.BAD_COLUMNS, f"{what}: {len(column)} values for {count} rows")
    return list(column)


def unpacked(column: Sequence[int], count: int, what: str) -> Sequence[int]:
    """One number from 0 to COUNT_MAX for each of `count` rows."""
    return check_counts(filled(column, count, what), what)


class _Amounts(NamedTuple):
    """Four columns of rates, or of totals."""

    admitted_messages: Sequence[int]
    admitted_bytes: Sequence[int]
    unmet_messages: Sequence[int]
    unmet_bytes: Sequence[int]


def _encode_amounts(admitted: Sequence[Pair], wanted: Sequence[Pair]) -> _Amounts:
    admitted_messages = [pair.messages for pair in admitted]
    admitted_bytes = [pair.bytes for pair in admitted]
    return _Amounts(
        packed(admitted_messages, "admitted messages"),
        packed(admitted_bytes, "admitted bytes"),
        _unmet([pair.messages for pair in wanted], admitted_messages),
        _unmet([pair.bytes for pair in wanted], admitted_bytes),
    )


def _unmet(wanted: Sequence[int], admitted: Sequence[int]) -> Sequence[int]:
    unmet = list(map(sub, check_counts(wanted, "wanted"), admitted))
    return unmet if any(unmet) else ()


def _decode_amounts(amounts: _Amounts, count: int) -> tuple[Iterable[Pair], Iterable[Pair]]:
    """Admitted and wanted, row by row."""
    messages = unpacked(amounts.admitted_messages, count, "admitted messages")
    bytes_ = unpacked(amounts.admitted_bytes, count, "admitted bytes")
    wanted_messages = _wanted(messages, amounts.unmet_messages)
    wanted_bytes = _wanted(bytes_, amounts.unmet_bytes)
    return map(Pair, messages, bytes_), map(Pair, wanted_messages, wanted_bytes)


def _wanted(admitted: Sequence[int], unmet: Sequence[int]) -> Sequence[int]:
    if not unmet:
        return admitted
    return check_counts(list(map(add, admitted, filled(unmet, len(admitted), "unmet"))), "wanted")


def _encode_keys(rows: Sequence[UsageRow]) -> tuple[list[str], list[int]]:
    """The groups, and for each the kinds it has a row of."""
    groups: list[str] = []
    kinds: list[int] = []
    before: tuple[str, int] = ("", 0)
    for row in rows:
        key = row_key(row)
        if key <= before:
            fault = Reason.DUPLICATE if key == before else Reason.BAD_STRUCTURE
            raise Malformed(fault, f"rows: {row.group!r} {row.kind} comes twice or out of order")
        if row.group == before[0]:
            kinds[-1] |= key[1]
        else:
            groups.append(check_group(row.group))
            kinds.append(key[1])
        before = key
    return groups, kinds


def _decode_keys(columns: UsageColumns) -> tuple[list[str], list[Kind]]:
    """Group and kind of each row."""
    if len(columns.groups) != len(columns.kinds):
        raise Malformed(
            Reason.BAD_COLUMNS, f"kinds: {len(columns.kinds)} for {len(columns.groups)} groups"
        )
    _check_rows(len(columns.groups))
    groups: list[str] = []
    kinds: list[Kind] = []
    before = ""
    for group, bits in zip(columns.groups, columns.kinds, strict=True):
        if check_group(group) <= before:
            fault = Reason.DUPLICATE if group == before else Reason.BAD_STRUCTURE
            raise Malformed(fault, f"groups: {group!r} comes twice or out of order")
        of_group = _KINDS_OF.get(bits)
        if of_group is None:
            raise Malformed(Reason.BAD_NUMBER, f"kinds: expected 1, 2 or 3, got {bits}")
        groups.extend([group] * len(of_group))
        kinds.extend(of_group)
        before = group
    _check_rows(len(groups))
    return groups, kinds


def _check_rows(count: int) -> None:
    if count > ROWS_MAX:
        raise Oversize("rows", count, ROWS_MAX)
