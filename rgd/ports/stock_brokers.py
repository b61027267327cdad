"""Which brokers of a stock Pulsar live, as its admin API lists them.

Law: an answer lists all live brokers, or reading fails. What one broker does not tell about itself is None,
and never guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ListedBroker:
    """A live stock broker."""

    #: As the admin API lists it: `host:port` of its web service.
    address: str
    #: As its usage reports name it, such as `pulsar://host:6650`; None: it did not say.
    service_url: str | None = None
    #: How often it reports usage, in seconds; 0: never, its transport is off; None: it did not say.
    period_s: int | None = None

    @property
    def host(self) -> str:
        """The host of its address, which its service URL has too."""
        return self.address.rpartition(":")[0]


class StockBrokers(Protocol):
    """The list of live brokers."""

    async def listed(self) -> Sequence[ListedBroker]:
        """Read the list, which is never empty.

        Raises:
            StockError: it cannot be read.
        """

    async def close(self) -> None:
        """Close the connections."""
