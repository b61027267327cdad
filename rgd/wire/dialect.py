"""A dialect: messages of one kind as bytes, and back. The daemon's traffic works with any of them.

Law: `decode` ends in a message or in a `WireError`, whatever the bytes are, and `cost` says beforehand how much
work it is. Every payload that `encode` returns fits into an exchange's message, and decoding all of
them gives what the message says.

`rgd.core.exchange.dialects` says what a member of each dialect can be asked. `rgd.wire.codec` and
`rgd.wire.pulsar_usage` have the formats.
"""

from collections.abc import Collection
from typing import Final, Protocol, TypeVar

from rgd.core.exchange.dialects import DialectName
from rgd.core.exchange.messages import Message, Report
from rgd.core.stock.messages import StockReport
from rgd.wire.codec import decode, encode, plain_bytes
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.pulsar_usage import decode_stock_report, encode_stock_reports

M = TypeVar("M")

#: A group of a stock report is decoded one by one, at some eight times the cost of a column's bytes.
STOCK_COST: Final = 8


class Dialect(Protocol[M]):
    """One format of messages."""

    @property
    def name(self) -> DialectName:
        """Its name in the settings."""

    def cost(self, payload: bytes) -> int:
        """The work of decoding a payload, in bytes of compact columns; costs nothing.

        Raises:
            WireError: `decode` would refuse it by its first bytes alone.
        """

    def decode(self, payload: bytes) -> M:
        """The message of a payload; one call at a time, from any thread.

        Raises:
            WireError: with the reason, whatever is wrong.
        """

    def rows(self, message: M) -> int:
        """How many rows a message has, which is the work of encoding it."""

    def encode(self, message: M) -> tuple[bytes, ...]:
        """The payloads to send for a message, in order; one call at a time, from any thread.

        Raises:
            WireError: the message cannot be written.
        """

    def keep(self, senders: Collection[str]) -> None:
        """Forget what earlier messages of all other senders said; not while `decode` runs."""


class CompactDialect:
    """Messages between rgd daemons, with numbers in place of names; fulfils `Dialect[Message]`."""

    name: Final = DialectName.COMPACT

    def __init__(self, *, first_generation: int = 1) -> None:
        #: The name dictionaries of the wire: ours, and those of all senders.
        self.name_encoder, self.name_decoders = NameEncoder(first_generation), NameDecoders()

    def cost(self, payload: bytes) -> int:
        return plain_bytes(payload)

    def decode(self, payload: bytes) -> Message:
        return decode(payload, self.name_decoders)

    def rows(self, message: Message) -> int:
        return len(message.rows) if isinstance(message, Report) else 0

    def encode(self, message: Message) -> tuple[bytes, ...]:
        return (encode(message, self.name_encoder),)

    def keep(self, senders: Collection[str]) -> None:
        self.name_decoders.keep(senders)


class PulsarDialect:
    """Reports of stock Pulsar brokers; fulfils `Dialect[StockReport]`."""

    name: Final = DialectName.PULSAR

    def cost(self, payload: bytes) -> int:
        return STOCK_COST * len(payload)

    def decode(self, payload: bytes) -> StockReport:
        return decode_stock_report(payload)

    def rows(self, message: StockReport) -> int:
        return len(message.usage)

    def encode(self, message: StockReport) -> tuple[bytes, ...]:
        return encode_stock_reports(message)

    def keep(self, senders: Collection[str]) -> None:
        """Nothing: each report stands by itself."""
