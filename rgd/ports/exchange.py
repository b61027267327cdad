"""The exchange topic and the policies table, as the daemon sees them.

Law: everything published on an exchange reaches every member that has joined,
the publisher too, unless it is lost: an exchange may lose, delay and duplicate,
and says nothing about it. A table keeps the last value of each key, for ever.

Adapters that run on a client's own threads cross into the event loop through
one bounded queue; when it is full the oldest message goes, and is counted
(a later report carries the same state again).
"""

from typing import Final, Protocol

from rgd.errors import RgdError

#: The largest payload of a message and the largest value of a table; below every broker's default.
PAYLOAD_BYTES_MAX: Final = 1 << 20
#: The longest key of a table, in characters; the longest that a policy can have is 3,100.
KEY_CHARS_MAX: Final = 4096


class ExchangeError(RgdError):
    """The exchange or the table could not do it."""


class ExchangeDown(ExchangeError):
    """The exchange cannot be reached now; it may come back by itself."""

    transient = True


class ExchangeClosed(ExchangeError):
    """It was used after it was closed, or before it was opened."""


class PayloadTooLarge(ExchangeError):
    """It is larger than PAYLOAD_BYTES_MAX and was not sent."""

    def __init__(self, payload_bytes: int) -> None:
        super().__init__(f"{payload_bytes} bytes; at most {PAYLOAD_BYTES_MAX} can be sent")


class Exchange(Protocol):
    """One topic on which every member hears every member."""

    @property
    def dropped(self) -> int:
        """Messages that were dropped because the bounded queue was full."""

    @property
    def unauthenticated(self) -> int:
        """Messages that were dropped because no member of this exchange can have sent them."""

    @property
    def trouble(self) -> str | None:
        """Why nothing gets through now, although it was joined; None while all is well."""

    async def open(self) -> None:
        """Join: from the return on, nothing that is published is missed on purpose.

        After ExchangeDown it may be called again.

        Raises:
            ExchangeDown: it cannot be reached; the message says what to do.
            ExchangeClosed: it was closed.
        """

    async def publish(self, payload: bytes) -> None:
        """Say `payload` to everybody; returns once the exchange has taken it.

        Raises:
            ExchangeDown: it was not taken within the adapter's send timeout.
            ExchangeClosed: the exchange is closed.
            PayloadTooLarge: it is too large for any exchange.
        """

    async def receive(self) -> list[bytes]:
        """Wait for messages and return all that are there, oldest first.

        Raises:
            ExchangeClosed: the exchange was closed.
        """

    async def close(self) -> None:
        """Leave. Idempotent; a waiting `receive` raises ExchangeClosed."""


class PolicyStore(Protocol):
    """Key -> value, the last value of each key kept, every member told of changes.

    An empty value is a tombstone: the key leaves the table, and the change is told as b"".
    A table whose connection is lost, or that was replaced by another one, says so: `changes` raises
    ExchangeDown, and `open` reads it again from its start.
    """

    @property
    def dropped(self) -> int:
        """Records that were left out, because a key or a value is larger than any of rgd's."""

    async def open(self) -> list[tuple[str, bytes]]:
        """Read what is kept of the table, oldest first; what comes after is told by `changes`.

        The last one of a key is its value. Values that it replaced may be there before it, until
        a compaction took them. It may be called again at any time; what `changes` had not told until
        then is in what this returns, and a put that waits may fail.

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

        Of a reader that is far behind, values that a later one of the same key replaced may be
        left out, never a key's last one.

        Raises:
            ExchangeDown: the table is lost: nothing comes until it is opened again.
            ExchangeClosed: the store was closed.
        """

    async def close(self) -> None:
        """Leave. Idempotent; a waiting `changes` raises ExchangeClosed."""
