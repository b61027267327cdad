"""This daemon's identity in the exchange, and the test whether a message in its name is its own.

Law: a message under this daemon's name and incarnation that it did not send is forged. The daemon
then takes another incarnation, so that the peers drop the forged rows.

Incarnations after the first are computed from the settings' seed, because the core draws no
randomness. Sequence numbers continue from one incarnation to the next.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Goodbye, Message, Report, Sender
from rgd.core.exchange.shards import WHOLE, Shard

#: Most sent reports that are remembered; an older one that arrives counts as late, not as forged.
SENT_MAX: Final = 256

#: The same of the reports of one shard.
SENT_OF_SHARD_MAX: Final = 32

#: Most former incarnations that are remembered; a daemon takes at most one a round.
FORMER_MAX: Final = 64

#: Incarnations have 62 bits, like the one of a start.
_INCARNATION_MASK: Final = (1 << 62) - 1


class _Print(NamedTuple):
    """The fields of a report that are compared when it comes back."""

    rows_hash: int
    weight: int
    policies_hash: int
    claim: int
    rival: int


class Identity:
    """This daemon's name, incarnation and sequence."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.sender = settings.sender
        self._seed = settings.incarnation_seed
        #: The last sequence number of each shard; reports of `WHOLE` are numbered like any other's.
        self._sequences: defaultdict[Shard, int] = defaultdict(int)
        self.is_leaving = False
        #: Messages under this name and incarnation that this daemon did not send.
        self.forged_total = 0
        #: By shard, because a report of each shard may be sent in every round.
        self._sent: defaultdict[Shard, OrderedDict[int, _Print]] = defaultdict(OrderedDict)
        #: The former incarnations, and the last sequence numbers sent in each.
        self._former: OrderedDict[int, Mapping[Shard, int]] = OrderedDict()

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

    def sent(self, report: Report) -> None:
        """Remember a report that was sent."""
        sent = self._sent[report.shard]
        sent[report.sequence] = _print(report)
        if len(sent) > (SENT_MAX if report.shard == WHOLE else SENT_OF_SHARD_MAX):
            sent.popitem(last=False)

    def is_former(self, sender: Sender) -> bool:
        """Whether a sender is a former incarnation of this daemon."""
        return sender.incarnation in self._former

    def is_forged(self, message: Message) -> bool:
        """Whether another process sent a message under this name and one of its incarnations."""
        former = self._former.get(message.sender.incarnation)
        if isinstance(message, Goodbye):
            # A daemon that changes its incarnation sends a goodbye for the former one.
            return former is None and not self.is_leaving
        if not isinstance(message, Report):
            return False
        sequences = self._sequences if former is None else former
        if message.sequence > sequences.get(message.shard, 0):
            return True
        prints = self._sent.get(message.shard)
        sent = None if prints is None else prints.get(message.sequence)
        return sent is not None and sent != _print(message)

    def renew(self) -> None:
        """Take another incarnation."""
        me = self.sender
        self._former[me.incarnation] = dict(self._sequences)
        if len(self._former) > FORMER_MAX:
            self._former.popitem(last=False)
        text = f"{self._seed}:{me.broker}:{me.incarnation}:{self.sequence}"
        digest = blake2b(text.encode(), digest_size=8).digest()
        incarnation = int.from_bytes(digest, "big") & _INCARNATION_MASK
        self.sender = Sender(me.broker, incarnation or 1)


def _print(report: Report) -> _Print:
    return _Print(report.rows_hash, report.weight, report.policies_hash, report.claim, report.rival)
