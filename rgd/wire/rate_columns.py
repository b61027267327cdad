"""Rates of rows as columns of 16-bit codes (proto: UsageColumns `admitted_high` and the three after it).

Law: `read` gives back what `write` was given, and `write` takes only rows whose rates all have the precision
of reports (`rgd.core.exchange.precision`). Whatever the bytes, `read` answers with rates that the precision
has, or raises `Malformed`.

The high bytes of a column compress well, because they are mostly the magnitude of a rate; the low bytes do
not. So high and low bytes are apart, and messages and bytes. Demand is the difference of its code to that of
admitted work: mostly 0, and otherwise small. A reader needs no varints: it joins the bytes.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Codes, Ints, UsageColumns
from rgd.core.exchange.precision import RATES, RateCodes, codes_of
from rgd.wire import usage_pb2
from rgd.wire.errors import Malformed, Reason

#: Differences that are not 0 begin here, so that their high byte is not 0.
_BASE: Final = 1 << 8
_BYTE: Final = 0xFF
_CODE_MAX: Final = len(RATES) - 1

#: [2, rows] codes or differences of messages, and of bytes.
_Columns = NDArray[np.int64]


def write(rows: UsageColumns, proto: usage_pb2.UsageColumns) -> None:
    """Write the rates of rows.

    Raises:
        Malformed: they are not rounded.
    """
    admitted = codes_of(rows.admitted)
    wanted = codes_of(rows.wanted)
    if admitted is None or wanted is None:
        raise Malformed(Reason.BAD_NUMBER, "rates: expected rounded ones")
    proto.admitted_high, proto.admitted_low = _high(admitted.T), _low(admitted.T)
    unmet = _differences(admitted, wanted)
    if unmet.any():
        proto.unmet_high = _high(unmet)
        proto.unmet_low = _low(unmet[unmet > 0])


def read(proto: usage_pb2.UsageColumns, count: int) -> tuple[Ints, Ints]:
    """Each [rows, 2] Milli per second: what was admitted and wanted, of so many rows.

    Raises:
        Malformed: columns of other lengths, or a code without a rate.
    """
    codes = _bytes_of(proto.admitted_high, 2 * count, "admitted").astype(np.uint16)
    codes <<= 8
    codes |= _bytes_of(proto.admitted_low, 2 * count, "admitted")
    if codes.max(initial=0) > _CODE_MAX:
        raise Malformed(Reason.BAD_NUMBER, "admitted: a code without a rate")
    admitted = _rates(codes)
    if not proto.unmet_high:
        return admitted, admitted
    at, changed = _unmet(proto, count)
    changed += codes.take(at)
    # A difference is less than half of all 16-bit numbers, so a sum below 0 wraps around to one without a rate.
    if changed.max(initial=0) > _CODE_MAX:
        raise Malformed(Reason.BAD_NUMBER, "unmet: a code without a rate")
    codes[at] = changed
    return admitted, _rates(codes)


def _rates(codes: RateCodes) -> Ints:
    """[rows, 2] the rates of codes, which are of all messages, then of all bytes."""
    return RATES.take(codes).reshape(2, -1).T


def _high(codes: RateCodes | _Columns) -> bytes:
    return (codes >> 8).astype(np.uint8).tobytes()


def _low(codes: RateCodes | _Columns) -> bytes:
    return (codes & _BYTE).astype(np.uint8).tobytes()


def _differences(admitted: RateCodes, wanted: RateCodes) -> _Columns:
    """[2, rows] 0 where codes are the same, otherwise the zigzagged difference above `_BASE`."""
    differences = wanted.T.astype(np.int64) - admitted.T
    zigzagged = (differences << 1) ^ (differences >> 63)
    return np.where(differences != 0, zigzagged + (_BASE - 1), 0)


def _unmet(proto: usage_pb2.UsageColumns, count: int) -> tuple[Ints, RateCodes]:
    """Where the differences are that are not 0, in the order of the columns, and what they are, modulo 2**16."""
    high = _bytes_of(proto.unmet_high, 2 * count, "unmet")
    at = (high != 0).nonzero()[0]
    zigzagged = high.take(at).astype(np.uint16)
    zigzagged <<= 8
    zigzagged |= _bytes_of(proto.unmet_low, len(at), "unmet")
    zigzagged -= _BASE - 1
    sign = zigzagged & 1
    np.negative(sign, out=sign)
    zigzagged >>= 1
    zigzagged ^= sign
    return at, zigzagged


def _bytes_of(data: bytes, count: int, what: str) -> Codes:
    if len(data) != count:
        raise Malformed(Reason.BAD_COLUMNS, f"{what}: {len(data)} bytes, expected {count}")
    return np.frombuffer(data, np.uint8)
