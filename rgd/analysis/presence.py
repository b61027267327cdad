"""Determines when brokers were up: the times in which one stood still, and the end of each incarnation.

A broker uses a sequence number for every round, also for rounds without requests, which are not
logged. So between two records of one incarnation

- sequences that grow with the time mean that the broker was up and idle;
- a period of several rounds, or time without as many sequences, means that it stood still: it was
  stopped (SIGSTOP, a paused machine) or too busy to end its rounds. It was *silent*, which is not starved.

An orderly stop writes a closing record. An incarnation without one was killed, if others outlived it, or
still ran when its log was read. In both cases the counts of its last round, up to a round's length, were
in its memory only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from rgd.wire.record import LoggedRound

#: A round that lasted for more than this many rounds, or so many without a sequence, is a silence.
SILENT_ROUNDS_MIN: Final = 2.0

#: If less than this fraction of a gap has no sequences, the broker was idle, and stood still for a part of it.
SILENT_PART_MIN: Final = 0.5

#: Peers forget a broker this many rounds after its last message, at the most (expiry and a margin);
#: a broker that others outlived by more was down.
FORGOTTEN_ROUNDS: Final = 6.0


#: Sequences that a starting broker uses before its first record, at the most: its hello, early reports, and some rounds
#: without requests. A broker whose first record has a later one was there before the logs or the range begin.
STARTING_SEQUENCES: Final = 8


class Ending(StrEnum):
    """How an incarnation ended."""

    #: With a closing record.
    CLOSED = "closed"
    #: Without one, and others or a later incarnation outlived it.
    KILLED = "killed"
    #: Without one at the end of the logs: it still ran, or was killed.
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Silence:
    """Time in which a broker wrote no records and was not idle; ms since 1970."""

    broker: str
    #: The last sign of it, and the next.
    from_ms: int
    to_ms: int


class RoundPart(NamedTuple):
    """A record's place in its incarnation: the round, and which of so many parts; later ones compare as greater."""

    sequence: int
    part: int
    parts: int

    @classmethod
    def of(cls, record: LoggedRound) -> "RoundPart":
        """The place of a record."""
        return cls(record.sequence, record.part, record.parts)


@dataclass(slots=True)
class Life:
    """One incarnation of a broker, or a part of it; times in ms since 1970."""

    broker: str
    incarnation: str
    first: RoundPart
    last: RoundPart
    #: When its first record's round began, and when its last one's ended.
    first_ms: int = 0
    last_ms: int = 0
    #: Whether the last record is a closing one.
    is_closed: bool = False
    #: When it stood still between its records.
    silent: list[tuple[int, int]] = field(default_factory=list)

    @property
    def begins(self) -> bool:
        """Whether its first record is of its start."""
        return self.first.sequence <= STARTING_SEQUENCES


@dataclass(frozen=True, slots=True)
class End:
    """How and when an incarnation ended; the time is its last sign of life."""

    broker: str
    at_ms: int
    ending: Ending


def is_long(period_ms: float, round_ms: float) -> bool:
    """Whether a round lasted so long that its broker stood still in it."""
    return period_ms > SILENT_ROUNDS_MIN * round_ms


def stood_still(gap_ms: float, sequences: int, round_ms: float) -> bool:
    """Whether a broker stood still in a gap between records, in which it took so many sequences."""
    silent_ms = gap_ms - sequences * round_ms
    return is_long(silent_ms, round_ms) and silent_ms >= SILENT_PART_MIN * gap_ms


def whole_lives(parts: Iterable[Life], round_ms: float) -> list[Life]:
    """Join the parts of each incarnation, which may span segments."""
    lives: list[Life] = []
    ordered = sorted(parts, key=lambda one: (one.broker, one.incarnation, one.first))
    for part in ordered:
        before = lives[-1] if lives else None
        if before is None or (before.broker, before.incarnation) != (part.broker, part.incarnation):
            lives.append(part)
            continue
        gap = (before.last_ms, part.first_ms)
        skipped = part.first.sequence - before.last.sequence - 1
        is_gap = stood_still(gap[1] - gap[0], skipped, round_ms)
        lives[-1] = replace(
            part,
            first_ms=before.first_ms,
            first=before.first,
            silent=[*before.silent, *([gap] if is_gap else []), *part.silent],
        )
    return sorted(lives, key=lambda one: (one.broker, one.first_ms))


def find_ends(
    lives: Sequence[Life], seen_ms: dict[tuple[str, str], int], round_ms: float
) -> list[End]:
    """How each incarnation ended.

    Args:
        lives: by broker, each broker's in the order of time.
        seen_ms: by broker and incarnation, when a record of another broker last knew it as there.
        round_ms: length of a round.
    """
    ends = []
    newest_ms: dict[str, int] = {}
    for life in lives:
        newest_ms[life.broker] = max(life.last_ms, newest_ms.get(life.broker, 0))
    for one, following in [*pairwise(lives), (lives[-1], None)] if lives else []:
        forgotten_ms = FORGOTTEN_ROUNDS * round_ms
        at_ms = seen_ms.get((one.broker, one.incarnation), 0)
        if at_ms <= one.last_ms + forgotten_ms:
            # Peers know it for some rounds after its end, so its last record is as exact.
            at_ms = one.last_ms
        others_ms = max((at for broker, at in newest_ms.items() if broker != one.broker), default=0)
        is_followed = following is not None and following.broker == one.broker
        is_outlived = is_followed or others_ms > at_ms + forgotten_ms
        ending = Ending.KILLED if is_outlived else Ending.OPEN
        ends.append(End(one.broker, at_ms, Ending.CLOSED if one.is_closed else ending))
    return ends


def find_silences(lives: Sequence[Life], ends: Sequence[End], round_ms: float) -> list[Silence]:
    """When brokers stood still, and when they were down after a kill."""
    found = [Silence(one.broker, *gap) for one in lives for gap in one.silent]
    found += _after_kills(lives, ends, round_ms)
    return sorted(found, key=lambda one: (one.from_ms, one.broker))


def _after_kills(lives: Sequence[Life], ends: Sequence[End], round_ms: float) -> Iterator[Silence]:
    for (one, end), following in zip(zip(lives, ends, strict=True), lives[1:], strict=False):
        if end.ending is Ending.KILLED and one.broker == following.broker:
            silence = Silence(one.broker, end.at_ms, following.first_ms)
            if is_long(silence.to_ms - silence.from_ms, round_ms):
                yield silence
