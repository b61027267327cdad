"""Rounds in parts: which part of which round a record is, and the parts missing between two records.

Law: a round counts once, however it is divided, and each missing part counts as
one missing record, wherever a segment ends. Parts after the last record of a log are still being
written, and those before its first one were deleted with an earlier segment, so neither are missing.
"""

from typing import NamedTuple

from rgd.core.exchange.messages import RoundRecord


class RoundPart(NamedTuple):
    """A record's position in its run; later ones compare as greater."""

    sequence: int
    part: int
    parts: int

    @classmethod
    def of(cls, record: RoundRecord) -> "RoundPart":
        """The position of a record."""
        return cls(record.sequence, record.part, record.parts)


def parts_between(before: RoundPart, after: RoundPart) -> int:
    """The number of parts of the two records' rounds between them, without complete rounds."""
    if before.sequence == after.sequence:
        return max(0, after.part - before.part - 1)
    return (before.parts - before.part) + (after.part - 1)
