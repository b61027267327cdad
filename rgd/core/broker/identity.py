"""This daemon's identity in the exchange: its name, its incarnation, and the sequence of its reports.

Law: a sequence number is used once; each shard has its own.
"""

from collections import defaultdict

from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Report
from rgd.core.exchange.shards import WHOLE, Shard


class Identity:
    """This daemon's name, incarnation and sequence."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.sender = settings.sender
        #: The last sequence number of each shard; reports of `WHOLE` are numbered like any other's.
        self._sequences: defaultdict[Shard, int] = defaultdict(int)

    @property
    def sequence(self) -> int:
        """The last sequence number of reports on the exchange's topic."""
        return self._sequences[WHOLE]

    def sequences(self, layout: int) -> tuple[int, ...]:
        """The last sequence number of each shard of a layout."""
        known = self._sequences
        return tuple(known.get(Shard(number, layout), 0) for number in range(layout))

    def next_sequence(self, shard: Shard = WHOLE) -> int:
        """Take the next sequence number."""
        self._sequences[shard] += 1
        return self._sequences[shard]

    def has_sent(self, report: Report) -> bool:
        """Whether this daemon has used the sequence number of a report in its name."""
        return report.sequence <= self._sequences.get(report.shard, 0)
