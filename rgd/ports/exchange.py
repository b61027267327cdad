"""The exchange topic and the policies table, as interfaces of the daemon.

Law: everything published on an exchange reaches every member that has joined,
the publisher too, unless it is lost. An exchange may lose, delay and duplicate messages
without notice. A table keeps the last value of each key for ever.

Adapters that run on a client's own threads pass messages to the event loop through
one bounded queue. A full queue drops and counts its oldest message
(a later report carries the same state again).
"""

from collections import Counter
from typing import Final, NamedTuple, Protocol

from rgd.errors import RgdError

#: The largest payload of a message and the largest value of a table; below every broker's default.
PAYLOAD_BYTES_MAX: Final = 1 << 20
#: The longest key of a table, in characters; the longest that a policy can have is 3,100.
KEY_CHARS_MAX: Final = 4096

#: Why an exchange dropped a message: the bounded queue was full; no member of this exchange can have sent it; no client of
#: the exchange would send it so.
OVERFLOW: Final = "overflow"
UNAUTHENTICATED: Final = "unauthenticated"
UNREADABLE: Final = "unreadable"
DROPS: Final = frozenset({OVERFLOW, UNAUTHENTICATED, UNREADABLE})


class ExchangeError(RgdError):
    """An operation of the exchange or the table failed."""


class ExchangeDown(ExchangeError):
    """The exchange is unreachable now; it may come back by itself."""

    transient = True


class ExchangeClosed(ExchangeError):
    """It was used after it was closed, or before it was opened."""


class PayloadTooLarge(ExchangeError):
    """It is larger than PAYLOAD_BYTES_MAX and was not sent."""

    def __init__(self, payload_bytes: int) -> None:
        super().__init__(f"{payload_bytes} bytes; at most {PAYLOAD_BYTES_MAX} can be sent")


class Received(NamedTuple):
    """A message, and when it was published."""

    payload: bytes
    #: By the sender's clock, in ms since 1970; 0: it does not say.
    published_ms: int


class Exchange(Protocol):
    """One topic on which every member receives every member's messages."""

    @property
    def dropped(self) -> Counter[str]:
        """Messages that were dropped, by reason (`DROPS`)."""

    @property
    def trouble(self) -> str | None:
        """The reason why no message gets through, although it was joined; None if none is known."""

    async def open(self) -> None:
        """Join: the exchange delivers everything that is published after the return.

        After ExchangeDown it may be called again.

        Raises:
            ExchangeDown: it cannot be reached; the message says what to do.
            ExchangeClosed: it was closed.
        """

    async def publish(self, payload: bytes) -> None:
        """Send `payload` to all members; returns once the exchange has accepted it.

        Payloads of calls that wait at the same time are sent in the order of the calls.

        Raises:
            ExchangeDown: it was not accepted within the adapter's send timeout.
            ExchangeClosed: the exchange is closed.
            PayloadTooLarge: it is too large for any exchange.
        """

    async def receive(self) -> list[bytes]:
        """Wait for messages and return all that have arrived, oldest first.

        Raises:
            ExchangeClosed: the exchange was closed.
        """

    async def receive_dated(self) -> list[Received]:
        """As `receive`, with the publish times: for dialects whose messages have none inside."""

    async def close(self) -> None:
        """Leave. Idempotent; a waiting `receive` raises ExchangeClosed."""


class PolicyStore(Protocol):
    """Key -> value: it keeps the last value of each key and notifies every member of changes.

    An empty value is a tombstone: the key leaves the table, and the change is delivered as b"".
    When the connection is lost or the table was replaced by another one, `changes` raises
    ExchangeDown, and `open` reads the table again from its start.
    """

    @property
    def dropped(self) -> int:
        """Records that were ignored, because a key or a value is larger than any of rgd's."""

    async def open(self) -> list[tuple[str, bytes]]:
        """Read the table, oldest records first; `changes` returns later ones.

        The last record of a key is its value. Replaced values may come before it, until
        a compaction removes them. It may be called again at any time. The result includes
        changes that `changes` has not returned yet, and a waiting put may fail.

        Raises:
            ExchangeDown: it cannot be reached; the message says what to do.
            ExchangeClosed: it was closed.
        """

    async def put(self, key: str, value: bytes) -> None:
        """Write a value under a key that is not empty; returns once it is durable.

        Raises:
            ExchangeDown, ExchangeClosed, PayloadTooLarge: as `Exchange.publish`. After ExchangeDown
                the value may still arrive.
        """

    async def changes(self) -> list[tuple[str, bytes]]:
        """Wait for changes since the last call and return them, oldest first, own ones too.

        A reader that is far behind may miss replaced values, but never a key's last one.

        Raises:
            ExchangeDown: the table is lost; open it again to receive changes.
            ExchangeClosed: the store was closed.
        """

    async def close(self) -> None:
        """Leave. Idempotent; a waiting `changes` raises ExchangeClosed."""
