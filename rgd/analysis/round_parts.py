"""Rounds that a log has in parts: which part of which round a record is, and what lies between two.

Law: a round counts once, whatever it is divided into, and each part of it that is not there counts as
one missing record, wherever a segment ends. Parts that would follow the last record of a log are being
written still, and those before its first one were deleted with an earlier segment: neither is missing.
"""

from typing import NamedTuple

from rgd.core.exchange.messages import RoundRecord


class RoundPart(NamedTuple):
    """A record's place in its run; later ones compare as greater."""

    sequence: int
    part: int
    parts: int

    @classmethod
    def of(cls, record: RoundRecord) -> "RoundPart":
        """The place of a record."""
        return cls(record.sequence, record.part, record.parts)


def parts_between(before: RoundPart, after: RoundPart) -> int:
    """How many parts of the two records' rounds should stand between them; whole rounds not counted."""
    if before.sequence == after.sequence:
        return max(0, after.part - before.part - 1)
    return (before.parts - before.part) + (after.part - 1)
