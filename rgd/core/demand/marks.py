"""Readings of counters as rows of a column, and the arithmetic between two of them.

A mark is all counters of a group at one time: one row of `FIELDS` integers. A rate is the count
between two marks divided by the time between them, so nothing is counted twice or lost. Counts are
whole units, rates Milli per second. Counters of Python have no bound, so marks are doubles. They
are exact up to 2**53, which is a hundred days of ns, and lose precision beyond.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.demand.counters import Counters
from rgd.core.units import MILLI, NS_PER_S, RATE_MAX

#: A count times this, divided by a time in ns, is a rate in Milli per second.
SCALE: Final = MILLI * NS_PER_S

#: The columns of a mark; those of amounts are pairs, messages and bytes.
AT, SINCE, REQUESTS, RETRIES, REFUSALS = range(5)
ADMITTED, RETRIED, REFUSED, REFUSED_NEW, UNSAID = (slice(at, at + 2) for at in range(5, 15, 2))
FIELDS: Final = 15
#: All refused work.
ALL_REFUSED: Final = slice(9, 15)

_MARK: Final = Struct(f"{FIELDS}d")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def read(counters: Sequence[Counters]) -> Floats:
    """[rows, FIELDS] the present readings of some counters."""
    # Numpy takes half as long again to read tuples.
    pack = _MARK.pack
    rows = [
        pack(
            of.at,
            of.touched_at,
            of.requests,
            of.retries,
            of.refusals,
            of.messages - of.netted_messages,
            of.bytes - of.netted_bytes,
            of.retried_messages,
            of.retried_bytes,
            of.refused_messages,
            of.refused_bytes,
            of.refused_new_messages,
            of.refused_new_bytes,
            of.unsaid_messages,
            of.unsaid_bytes,
        )
        for of in counters
    ]
    return np.frombuffer(bytearray().join(rows), np.float64).reshape(-1, FIELDS)


def counted(begin: Floats, end: Floats, fields: slice) -> Floats:
    """[rows, 2] the counts between two marks."""
    return end[:, fields] - begin[:, fields]


def arrived(begin: Floats, end: Floats) -> Floats:
    """[rows, 2] new work between two marks: what was admitted, or what arrived if that is more."""
    admitted = counted(begin, end, ADMITTED)
    new = admitted - counted(begin, end, RETRIED) + counted(begin, end, REFUSED_NEW)
    return np.maximum(admitted, new)


def elapsed(begin: Floats, end: Floats) -> Floats:
    """[rows] nanoseconds from one mark to another, at least one."""
    return np.maximum(end[:, AT] - begin[:, AT], 1)


def per_second(count: Floats, elapsed_ns: Floats) -> Floats:
    """[rows, 2] Milli per second."""
    return np.minimum(count * SCALE / elapsed_ns[:, None], RATE_MAX)


def whole(amounts: Floats) -> Ints:
    """Round amounts to whole numbers that fit a column, a message and a record."""
    numbers: Ints = np.minimum(np.rint(amounts), RATE_MAX).astype(np.int64)
    return numbers
