"""The names on the topic of stock brokers: service URLs, and `rgd://` and the broker's name for rgd.

Stable over restarts, because a stock broker never forgets a name that it has received a row of.
"""

from typing import Final

#: No service URL of Pulsar begins so.
PREFIX: Final = "rgd://"


def stock_name(broker: str) -> str:
    """The name under which an rgd broker reports to stock brokers."""
    return PREFIX + broker


def is_of_rgd(name: str) -> bool:
    """Whether a report on the topic of stock brokers is one of an rgd broker."""
    return name.startswith(PREFIX)


def is_service_url(name: str) -> bool:
    """Whether a report is in the name of a stock broker, which is its service URL; an rgd broker may have any other."""
    return name.startswith(("pulsar://", "pulsar+ssl://"))
