"""The dialects of the exchange, and what a member that uses one can be asked.

A stock broker reports its traffic and nothing else. What a member cannot be asked, this broker has
to observe or to estimate. `ABILITIES` is shown by `/v1/brokers`; no rule reads it.
`rgd.wire.dialect` has the bytes of each dialect.
"""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class DialectName(StrEnum):
    """A dialect, as `exchange.dialects` names it."""

    #: Between rgd daemons, on `exchange.topic` (proto/rgd/v1/usage.proto).
    COMPACT = "compact"
    #: Towards stock Pulsar brokers, on `STOCK_TOPIC` (proto/pulsar/resource_usage.proto).
    PULSAR = "pulsar"


class Ability(StrEnum):
    """What a member of a dialect does beside telling its traffic."""

    #: It answers a hello with its full state.
    HELLO = "hello"
    #: It sends its rows again when asked.
    ASK = "ask"
    #: Its reports are numbered and have a hash of its rows, so a loss is noticed.
    HASH = "hash"
    #: It says goodbye, and sends so often that its silence means that it has gone.
    GOODBYE = "goodbye"
    #: It tells what is wanted of it, not only what it admitted.
    WANTED = "wanted"


ABILITIES: Final = MappingProxyType(
    {DialectName.COMPACT: frozenset(Ability), DialectName.PULSAR: frozenset[Ability]()}
)

#: Where stock brokers exchange their usage; Pulsar has no setting for it.
STOCK_TOPIC: Final = "non-persistent://pulsar/system/resource-usage"
