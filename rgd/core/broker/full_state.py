"""Sends this broker's whole state, in one report or, where it is too large, in parts.

Law: a receiver that gets every part, and every report sent meanwhile, then has the state that the last
part's hash describes. One part is made at a time, as the state is at that moment: what changes between two
parts is sent as a change, too. The last of several parts waits until no round is ending, for what a
round has picked counts in the hash and is sent only at the round's end.
"""

from typing import NamedTuple

from rgd.core.broker.rounds import Rounds
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import ALL_ROWS, Span
from rgd.core.exchange.report_parts import part_of_state


class Part(NamedTuple):
    """Rows to send, and the span that they are all of."""

    rows: UsageColumns
    span: Span


class FullState:
    """The pass over the state that is under way, if any."""

    def __init__(self, rounds: Rounds, index: GroupIndex) -> None:
        self._rounds = rounds
        self._index = index
        #: The hash at which the next part begins; None: no pass is under way.
        self._begin: int | None = None

    @property
    def is_pending(self) -> bool:
        """Whether parts are left to be sent."""
        return self._begin is not None

    def begin(self) -> None:
        """Begin a pass."""
        self._begin = 0

    def abandon(self) -> None:
        """End the pass that is under way, if any: its parts are of no use any more."""
        self._begin = None

    def next(self) -> Part | None:
        """The next part; None where there is none, or the last one has to wait."""
        if self._begin is None:
            return None
        slots, span = part_of_state(self._index, self._rounds.advertised_slots(), self._begin)
        is_last = span.end == ALL_ROWS.end
        if is_last and span != ALL_ROWS and self._rounds.is_ending:
            return None
        self._begin = None if is_last else span.end
        return Part(self._rounds.advertised_at(slots), span)
