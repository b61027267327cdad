"""Who this daemon is in the exchange, and whether a message in its name is its own.

Law: whatever arrives under our own name and incarnation, we sent; otherwise it is
forged, and we take another incarnation, so that the peers drop what was forged.

An incarnation after the first is computed from the settings' seed, because the
core draws no randomness. Sequences go on from one incarnation to the next.
"""

from collections import OrderedDict
from hashlib import blake2b
from typing import Final, NamedTuple

from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Goodbye, Message, Report, Sender

#: Reports of ours that are remembered; an older one that arrives is taken for a late one.
SENT_MAX: Final = 256

#: Own incarnations that are remembered; a daemon takes at most one a round.
FORMER_MAX: Final = 64

#: Incarnations are 62 bits, as those of a start are.
_INCARNATION_MASK: Final = (1 << 62) - 1


class _Print(NamedTuple):
    """What of a report is the same when it comes back."""

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
        self.sequence = 0
        self.is_leaving = False
        #: Messages under our name and incarnation that we did not send.
        self.forged_total = 0
        self._sent: OrderedDict[int, _Print] = OrderedDict()
        #: Our earlier incarnations, and the last sequence sent in each.
        self._former: OrderedDict[int, int] = OrderedDict()

    def next_sequence(self) -> int:
        """Take the next sequence."""
        self.sequence += 1
        return self.sequence

    def sent(self, report: Report) -> None:
        """Remember a report of ours."""
        self._sent[report.sequence] = _print(report)
        if len(self._sent) > SENT_MAX:
            self._sent.popitem(last=False)

    def is_former(self, sender: Sender) -> bool:
        """Whether an incarnation of our name was ours."""
        return sender.incarnation in self._former

    def is_forged(self, message: Message) -> bool:
        """Whether a message in our name, and an incarnation of ours, is not ours."""
        former = self._former.get(message.sender.incarnation)
        if isinstance(message, Goodbye):
            # A former incarnation says goodbye when it is given up.
            return former is None and not self.is_leaving
        if not isinstance(message, Report):
            return False
        if message.sequence > (self.sequence if former is None else former):
            return True
        sent = self._sent.get(message.sequence)
        return sent is not None and sent != _print(message)

    def renew(self) -> None:
        """Take another incarnation."""
        me = self.sender
        self._former[me.incarnation] = self.sequence
        if len(self._former) > FORMER_MAX:
            self._former.popitem(last=False)
        text = f"{self._seed}:{me.broker}:{me.incarnation}:{self.sequence}"
        digest = blake2b(text.encode(), digest_size=8).digest()
        incarnation = int.from_bytes(digest, "big") & _INCARNATION_MASK
        self.sender = Sender(me.broker, incarnation or 1)


def _print(report: Report) -> _Print:
    return _Print(report.rows_hash, report.weight, report.policies_hash, report.claim, report.rival)
