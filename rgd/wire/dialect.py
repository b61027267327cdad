"""A dialect: messages of one kind as bytes, and back. The daemon's traffic works with any of them.

Law: `decode` ends in a message or in a `WireError`, whatever the bytes are. Every payload that `encode` returns
fits into an exchange's message, and decoding all of them gives what the message says.

`rgd.core.exchange.dialects` says what a member of each dialect can be asked. `rgd.wire.codec` and
`rgd.wire.pulsar_usage` have the formats.
"""

from collections.abc import Collection
from typing import Protocol, TypeVar

from rgd.core.exchange.messages import Message
from rgd.core.stock.messages import StockReport
from rgd.wire.codec import decode, encode
from rgd.wire.name_dictionary import NameDecoders, NameEncoder
from rgd.wire.pulsar_usage import decode_stock_report, encode_stock_reports

M = TypeVar("M")


class Dialect(Protocol[M]):
    """One format of messages."""

    def decode(self, payload: bytes) -> M:
        """The message of a payload.

        Raises:
            WireError: with the reason, whatever is wrong.
        """

    def encode(self, message: M) -> tuple[bytes, ...]:
        """The payloads to send for a message, in order.

        Raises:
            WireError: the message cannot be written.
        """

    def keep(self, senders: Collection[str]) -> None:
        """Forget what earlier messages of all other senders said."""


class CompactDialect:
    """Messages between rgd daemons, with numbers in place of names; fulfils `Dialect[Message]`."""

    def __init__(self, *, first_generation: int = 1) -> None:
        #: The name dictionaries of the wire: ours, and those of all senders.
        self.name_encoder, self.name_decoders = NameEncoder(first_generation), NameDecoders()

    def decode(self, payload: bytes) -> Message:
        return decode(payload, self.name_decoders)

    def encode(self, message: Message) -> tuple[bytes, ...]:
        return (encode(message, self.name_encoder),)

    def keep(self, senders: Collection[str]) -> None:
        self.name_decoders.keep(senders)


class PulsarDialect:
    """Reports of stock Pulsar brokers; fulfils `Dialect[StockReport]`."""

    def decode(self, payload: bytes) -> StockReport:
        return decode_stock_report(payload)

    def encode(self, message: StockReport) -> tuple[bytes, ...]:
        return encode_stock_reports(message)

    def keep(self, senders: Collection[str]) -> None:
        """Nothing: each report stands by itself."""
