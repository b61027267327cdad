"""Rows as columns: the usage and the shares of many groups at once.

A report of 5,000 groups is one value with a handful of arrays, not 5,000
objects: numpy decodes, stores, compares and shares it (PIP-82's scale).
`UsageRow` and `ShareRow` are single rows of these, for views, tests and tools.

Law: columns of one value have the same length, and each (group, kind) occurs once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from rgd.core.buckets.decision import Level
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.pairs import Places
from rgd.core.policies.model import Rate, Rates, SharePolicyName
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import Kind, Pair

Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

#: A kind and a policy are encoded as their index in these tuples.
KINDS: Final = (Kind.PUBLISH, Kind.DISPATCH)
POLICIES: Final = tuple(SharePolicyName)

#: Where work of a group can be refused; the second axis of `ShareColumns.refused_by`.
REFUSED_BY: Final = tuple(level.value for level in Level)
_NO_LEVELS: Final = np.zeros((0, len(REFUSED_BY), 2), np.int64)

_KIND_CODE: Final = {kind: code for code, kind in enumerate(KINDS)}
_POLICY_CODE: Final = {policy: code for code, policy in enumerate(POLICIES)}


class _Columns:
    """Rows of which each field is a column: an array, names, or columns again."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self._names()))))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and all(map(_same, self._columns(), other._columns()))

    __hash__ = None  # type: ignore[assignment]  # arrays can change

    def take(self, places: Places) -> Self:
        """The rows at these indexes; a slice copies no numbers."""
        return type(self)(*(_picked(column, places) for column in self._columns()))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, at least one, one part after another."""
        if len(parts) == 1:
            return parts[0]
        counts = [*map(len, parts)]
        columns = zip(*map(cls._columns, parts), strict=True)
        return cls(*(_joined(column, counts) for column in columns))

    def _columns(self) -> Sequence[Any]:
        return [getattr(self, name) for name in self._names()]

    def _names(self) -> Iterable[str]:
        # Twice as fast as `dataclasses.fields`.
        names: Iterable[str] = self.__dataclass_fields__  # type: ignore[attr-defined]
        return names


@dataclass(frozen=True, slots=True, eq=False)
class UsageColumns(_Columns):
    """The usage that one broker reports for its groups.

    Attributes:
        groups: [rows] names; a tuple, or `NumberedNames`.
        kinds: [rows] indexes into `KINDS`.
        topics: [rows] number of active topics of the group.
        admitted: [rows, 2] Milli per second, messages and bytes; `wanted` likewise.
    """

    groups: Sequence[str]
    kinds: Codes
    topics: Ints
    admitted: Ints
    wanted: Ints

    @classmethod
    def of(cls, *rows: UsageRow) -> "UsageColumns":
        """Columns of single rows."""
        return cls(
            groups=tuple(row.group for row in rows),
            kinds=np.array([_KIND_CODE[row.kind] for row in rows], np.uint8),
            topics=np.array([row.topics for row in rows], np.int64),
            admitted=pairs([row.admitted for row in rows]),
            wanted=pairs([row.wanted for row in rows]),
        )

    def __iter__(self) -> Iterator[UsageRow]:
        """Single rows, in order."""
        return map(
            UsageRow,
            self.groups,
            (KINDS[code] for code in self.kinds.tolist()),
            self.topics.tolist(),
            _pairs_of(self.admitted),
            _pairs_of(self.wanted),
        )

    @property
    def is_idle(self) -> Flags:
        """[rows] whether a row is all 0: PIP-82 removes such a broker from the group's map."""
        amounts = self.wanted | self.admitted
        # A maximum along an axis of two takes numpy ten times as long.
        idle: Flags = (amounts[:, 0] | amounts[:, 1]) == 0
        return idle

    def in_order(self) -> "UsageColumns":
        """The rows sorted by group, publish before dispatch: the order on the wire."""
        return self.take(order_of(self))


@dataclass(frozen=True, slots=True, eq=False)
class ShareColumns(_Columns):
    """One round of the usage log: a row for each group.

    Attributes:
        usage: [rows] demand, and what was admitted.
        share: [rows, 2] this broker's share, Milli per second or `NO_RATE`; `quota` likewise.
        policies: [rows] indexes into `POLICIES`.
        refused: [rows, 2] whole units in the round, retries too.
        sent: [rows] whether the row was sent to the peers in this round.
        admitted_total: [rows, 2] whole units since the broker's start; `wanted_total` likewise.
        refused_by: [rows, REFUSED_BY, 2] by the level that refused; no rows: nothing, or unknown.
    """

    usage: UsageColumns
    share: Ints
    quota: Ints
    policies: Codes
    refused: Ints
    sent: Flags
    admitted_total: Ints
    wanted_total: Ints
    refused_by: Ints = field(default_factory=lambda: _NO_LEVELS)

    def __iter__(self) -> Iterator[ShareRow]:
        """Single rows, in order."""
        return map(
            ShareRow,
            self.usage,
            map(rates_of, self.share.tolist()),
            map(rates_of, self.quota.tolist()),
            (POLICIES[code] for code in self.policies.tolist()),
            _pairs_of(self.refused),
            self.sent.tolist(),
            _levels_by_row(self),
            _pairs_of(self.admitted_total),
            _pairs_of(self.wanted_total),
        )

    def in_order(self) -> "ShareColumns":
        """The rows sorted by group, publish before dispatch: the order in the log."""
        return self.take(order_of(self.usage))


def order_of(usage: UsageColumns) -> Ints:
    """[rows] row indexes sorted by group, publish before dispatch."""
    # Two stable sorts by single keys are twice as fast as one by pairs.
    places = np.argsort(usage.kinds, kind="stable").tolist()
    places.sort(key=usage.groups.__getitem__)
    return np.array(places, np.int64)


def kind_code(kind: Kind) -> int:
    """The index of a kind in `KINDS`."""
    return _KIND_CODE[kind]


def policy_code(policy: SharePolicyName) -> int:
    """The index of a policy in `POLICIES`."""
    return _POLICY_CODE[policy]


def pairs(values: Sequence[tuple[int, int]]) -> Ints:
    """[rows, 2] array of pairs of amounts."""
    # Numpy alone inspects each pair, and takes five times as long.
    flat = np.fromiter(chain.from_iterable(values), np.int64, 2 * len(values))
    return flat.reshape(len(values), 2)


def rates(values: Iterable[tuple[Rate, Rate]]) -> Ints:
    """[rows, 2] array of pairs of rates; None becomes `NO_RATE`."""
    return pairs(
        [
            (NO_RATE if messages is None else messages, NO_RATE if size is None else size)
            for messages, size in values
        ]
    )


def rates_of(pair: Sequence[int]) -> Rates:
    """A row of `rates`; `NO_RATE` becomes None."""
    messages, size = pair
    return Rates(None if messages == NO_RATE else messages, None if size == NO_RATE else size)


def _picked(column: Any, places: Places) -> Any:
    """Some of the rows of a column; of one without rows none."""
    if isinstance(column, np.ndarray):
        return column[places] if len(column) else column
    if isinstance(column, tuple):
        return (
            column[places]
            if isinstance(places, slice)
            else tuple(map(column.__getitem__, places.tolist()))
        )
    return column.take(places)


def _joined(columns: Sequence[Any], counts: Sequence[int]) -> Any:
    """A column of all parts, one part after another; a part that lacks it has zeros, if another one does not."""
    if isinstance(columns[0], np.ndarray):
        if not any(map(len, columns)):
            return columns[0]
        parts = zip(columns, counts, strict=True)
        return np.concatenate(
            [
                one if len(one) else np.zeros((count, *one.shape[1:]), one.dtype)
                for one, count in parts
            ]
        )
    if isinstance(columns[0], _Columns):
        return columns[0].join(columns)
    return tuple(chain.from_iterable(columns))


def _same(mine: Any, its: Any) -> bool:
    return np.array_equal(mine, its) if isinstance(mine, np.ndarray) else bool(mine == its)


def _pairs_of(column: Ints) -> Iterator[Pair]:
    return (Pair(messages, size) for messages, size in column.tolist())


def _levels_by_row(rows: ShareColumns) -> Iterator[tuple[tuple[str, Pair], ...]]:
    """For each row, the levels that refused something, and how much."""
    if not len(rows.refused_by):
        return (() for _ in range(len(rows)))
    return (
        tuple(
            (level, Pair(*pair))
            for level, pair in zip(REFUSED_BY, levels, strict=True)
            if any(pair)
        )
        for levels in rows.refused_by.tolist()
    )


NO_USAGE: Final = UsageColumns.of()
NO_SHARES: Final = ShareColumns(
    usage=NO_USAGE,
    policies=np.zeros(0, np.uint8),
    sent=np.zeros(0, np.bool_),
    **dict.fromkeys(("share", "quota", "refused", "admitted_total", "wanted_total"), pairs([])),
)
