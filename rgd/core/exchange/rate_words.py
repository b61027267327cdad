"""The four rates of a row as one word: what was admitted, messages and bytes, and the demand, 16 bits each.

Law: `rates_of(joined(admitted, wanted))` are the rates of these codes (`rgd.core.exchange.precision`).

Reports carry codes, and of the rows that a daemon receives few are of groups used here. So rows are kept
as they come, and their rates are looked up where a share is computed from them. A row is then one word to
compare and to write, in one line of the cache, where four rates were in four.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Codes, Flags, Ints, UsageColumns, taken
from rgd.core.exchange.precision import RATES, RateCodes, codes_of

#: [rows] from the lowest bits: codes of admitted messages and bytes, and of wanted messages and bytes.
Words = NDArray[np.uint64]

#: The word of a row whose rates have no codes; no word of codes is as large.
NOT_CODED: Final = np.uint64((1 << 64) - 1)
#: The bits of what was admitted; those of the demand are above them.
ADMITTED_BITS: Final = np.uint64((1 << 32) - 1)

_CODE: Final = np.dtype("<u2")
_WORD: Final = np.dtype("<u8")
_CODES: Final = 4


def joined(admitted: RateCodes, wanted: RateCodes) -> Words:
    """[rows] words of codes, which are [2 * rows]: of all messages, then of all bytes."""
    count = len(admitted) // 2
    codes = np.empty((count, _CODES), _CODE)
    codes[:, 0], codes[:, 1] = admitted[:count], admitted[count:]
    codes[:, 2], codes[:, 3] = wanted[:count], wanted[count:]
    words: Words = codes.view(_WORD).reshape(-1)
    return words


def rates_of(words: Words) -> Ints:
    """[4, rows] Milli per second: admitted messages and bytes, wanted messages and bytes.

    The rates of rows that are `NOT_CODED` mean nothing.
    """
    codes = words.view(_CODE).reshape(-1, _CODES)
    rates: Ints = RATES.take(codes.T, mode="clip")
    return rates


def coded(rows: UsageColumns) -> UsageColumns:
    """The rows with words, if all their rates are rounded; otherwise the rows as they are."""
    admitted, wanted = codes_of(rows.admitted), codes_of(rows.wanted)
    if admitted is None or wanted is None:
        return rows
    words = joined(admitted.T.reshape(-1), wanted.T.reshape(-1))
    return CodedColumns(rows.groups, rows.kinds, rows.topics, words)


class CodedColumns(UsageColumns):
    """Rows as a report carried them: their rates are words, and looked up when they are read."""

    __slots__ = ("words",)

    #: [rows].
    words: Words

    def __init__(self, groups: Sequence[str], kinds: Codes, topics: Ints, words: Words) -> None:
        # The base is frozen, and its columns of rates stay unset.
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "topics", topics)
        object.__setattr__(self, "words", words)

    @property
    def admitted(self) -> Ints:
        """[rows, 2] Milli per second."""
        return rates_of(self.words)[:2].T

    @property
    def wanted(self) -> Ints:
        """[rows, 2] Milli per second."""
        return rates_of(self.words)[2:].T

    @property
    def is_idle(self) -> Flags:
        """[rows] whether all rates are 0, whose code is 0."""
        idle: Flags = self.words == 0
        return idle

    def take(self, places: Ints) -> "CodedColumns":
        """The rows at these indexes."""
        groups = taken(self.groups, places)
        return CodedColumns(groups, self.kinds[places], self.topics[places], self.words[places])

    def between(self, begin: int, end: int) -> "CodedColumns":
        """The rows from index `begin` to before `end`; copies no numbers."""
        some = slice(begin, end)
        return CodedColumns(
            self.groups[some], self.kinds[some], self.topics[some], self.words[some]
        )
