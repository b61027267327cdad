"""Messages that somebody with the right to write forges in a broker's name.

Each is what an attacker can make from what he reads on the topic: the name, the incarnation and the
sequence. Which one it is is the world's dice.
"""

from random import Random

from rgd.core.broker.broker import Broker
from rgd.core.exchange.messages import Claim, Goodbye, Hello, Message, Report, Sender

#: A sequence that nobody reaches.
ABSURD = (1 << 63) - 1


def forgery(broker: Broker, dice: Random) -> Message:
    """One forged message in the name of a broker."""
    me, sequence = broker.identity.sender, broker.sequence
    invented = Sender(f"invented-{dice.randrange(1000)}", dice.getrandbits(62))
    forgeries: list[Message] = [
        # It wants nothing any more.
        Report(me, ABSURD, 1, full=True),
        Report(me, sequence + 1, 1, full=True),
        # It is worth more than all others together.
        Report(me, sequence + 1, 1, weight=10**9),
        # It goes.
        Goodbye(me),
        Report(me, sequence + 1, 1, claim=Claim.YIELDED),
        # Another daemon has its name, which does not know of it.
        Hello(Sender(me.broker, 0)),
        Report(Sender(me.broker, 0), ABSURD, 1, full=True),
        # There are others.
        Hello(invented),
        Goodbye(invented),
    ]
    return dice.choice(forgeries)
