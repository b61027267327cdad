"""Why an exchange dropped messages, beside the reasons of the wire (`rgd.wire.errors.Reason`)."""

from collections import Counter
from typing import Final

from rgd.ports.exchange import Exchange

#: The bounded queue was full.
OVERFLOW: Final = "overflow"
#: No daemon sealed them, on the embedded broker.
UNAUTHENTICATED: Final = "unauthenticated"
#: No client of the exchange would send them so.
UNREADABLE: Final = "unreadable"

#: Reasons that are shown also while nothing was dropped.
ALWAYS: Final = (OVERFLOW, UNAUTHENTICATED, UNREADABLE)


def drops_of(exchange: Exchange) -> Counter[str]:
    """How many messages an exchange dropped, by reason."""
    return Counter(
        {
            OVERFLOW: exchange.dropped,
            UNAUTHENTICATED: exchange.unauthenticated,
            UNREADABLE: exchange.unreadable,
        }
    )
