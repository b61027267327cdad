"""Makes the rows of full state reports: one report, or several parts if the state is too large.

Law: a receiver that gets every part, and every report sent meanwhile, then has the state that the
last part's hash describes. Each part is made from the state at the time it is sent; rows that
change between two parts are also sent as changes. The last of several parts waits until no round is
ending, because the hash already covers the rows that a round has picked, and these are sent only at
the round's end.
"""

from rgd.core.broker.rounds import Rounds
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import ALL_ROWS, Span
from rgd.core.exchange.report_parts import part_of_state
from rgd.core.exchange.shards import WHOLE, Shard


class FullState:
    """The pass over the state that is in progress, if any."""

    def __init__(self, rounds: Rounds, index: GroupIndex) -> None:
        self._rounds = rounds
        self._index = index
        #: The hash at which the next part begins; None: no pass is in progress.
        self._begin: int | None = None
        #: Whose state it is.
        self.shard = WHOLE

    @property
    def is_pending(self) -> bool:
        """Whether parts are left to be sent."""
        return self._begin is not None

    def begin(self, shard: Shard = WHOLE) -> None:
        """Begin a pass over the rows of a shard."""
        self._begin, self.shard = 0, shard

    def abandon(self) -> None:
        """Drop the pass that is in progress, if any, because its parts are no longer needed."""
        self._begin = None

    def next(self) -> tuple[UsageColumns, Span] | None:
        """The next part: its rows, and the span of hashes of which they are all rows.

        None where none is left, or the last one has to wait.
        """
        if self._begin is None:
            return None
        slots = self._rounds.advertised_slots(self.shard)
        slots, span = part_of_state(self._index, slots, self._begin)
        is_last = span.end == ALL_ROWS.end
        if is_last and span != ALL_ROWS and self._rounds.is_ending:
            return None
        self._begin = None if is_last else span.end
        return self._rounds.advertised_at(slots), span
