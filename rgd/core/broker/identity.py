"""This daemon's identity in the exchange: its name, its incarnation, and the sequence of its reports.

Law: a sequence number is used once; each shard has its own. A plane that takes over from another one of the same name and
incarnation begins `SKIPPED` behind what that one noted last.
"""

from collections.abc import Mapping
from typing import Final

from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Report
from rgd.core.exchange.shards import WHOLE, Shard

#: More sequences than a plane uses between two notes, and less than peers accept as a gap (`rgd.core.exchange.peers`).
SKIPPED: Final = 2_000

#: After so many sequences they are to be noted at once. A wake uses far fewer.
UNNOTED_MAX: Final = SKIPPED // 2

#: In place of the shards of which nothing was sent yet.
_OTHERS: Final = Shard(0, 0)


class Identity:
    """This daemon's name, incarnation and sequence.

    Args:
        settings: have name and incarnation.
        former: the sequences that the plane before noted (`used`), if there was one.
    """

    def __init__(
        self, settings: BrokerSettings, former: Mapping[tuple[int, int], int] | None = None
    ) -> None:
        self.sender = settings.sender
        #: The last sequence number of each shard; reports of `WHOLE` are numbered like any other's.
        self._sequences = {_OTHERS: 0}
        if former is not None:
            noted = {_OTHERS: 0} | {Shard(*shard): last for shard, last in former.items()}
            self._sequences = {shard: last + SKIPPED for shard, last in noted.items()}
        self._before = dict(self._sequences)
        #: How many sequences of all shards were used since they were noted.
        self._unnoted = 0

    @property
    def sequence(self) -> int:
        """The last sequence number of reports on the exchange's topic."""
        return _of(WHOLE, self._sequences)

    def sequences(self, layout: int) -> tuple[int, ...]:
        """The last sequence number of each shard of a layout."""
        shards = (Shard(number, layout) for number in range(layout))
        return tuple(_of(shard, self._sequences) for shard in shards)

    def used(self) -> Mapping[tuple[int, int], int]:
        """What is to be noted of the sequences for the next plane; the caller notes it."""
        self._unnoted = 0
        return {(shard.number, shard.of): last for shard, last in self._sequences.items()}

    @property
    def is_to_note(self) -> bool:
        """Whether so many sequences were used that they are to be noted before the round ends."""
        return self._unnoted >= UNNOTED_MAX

    def next_sequence(self, shard: Shard = WHOLE) -> int:
        """Take the next sequence number."""
        self._unnoted += 1
        self._sequences[shard] = _of(shard, self._sequences) + 1
        return self._sequences[shard]

    def has_sent(self, report: Report) -> bool:
        """Whether it was this plane that used the sequence number of a report in its name."""
        shard, last = report.shard, self._sequences
        return _of(shard, self._before) < report.sequence <= _of(shard, last)


def _of(shard: Shard, sequences: Mapping[Shard, int]) -> int:
    return sequences.get(shard, sequences[_OTHERS])
