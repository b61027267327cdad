"""What a caller asks and what it is answered; being limited is an answer.

The fields are those of `POST /v1/acquire` (design 5), with names already
checked and made full. A named tuple is made in less than half a frozen dataclass's time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from rgd.core.units import Dimension, Kind, Pair


class Level(StrEnum):
    """The levels of a decision, in their order (design 2)."""

    BROKER = "broker"
    RESOURCE_GROUP = "resource_group"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"


#: What a caller holds back that holds nothing back. The fast path compares by identity.
NOTHING: Final = Pair()

#: Kind, group, namespace, topic, subscription: what a chain of levels is found by.
Name = tuple[Kind, str | None, str | None, str | None, str | None]


class Request(NamedTuple):
    """One question: may so much of this kind pass? Its fields are the arguments of `Limiter.decide`."""

    kind: Kind = Kind.PUBLISH
    messages: int = 1
    bytes: int = 0
    #: A group named directly; else the names below are resolved.
    group: str | None = None
    #: Full names, `tenant/namespace` and `persistent://tenant/namespace/topic`.
    namespace: str | None = None
    topic: str | None = None
    subscription: str | None = None
    #: A part of the amounts is welcome, as for a dispatcher's read.
    partial: bool = False
    #: 1 for new work, more for a retry of work refused before, 0 where the caller did not say.
    attempt: int = 1
    #: What the caller holds back instead of retrying.
    held: Pair = NOTHING


class Together:
    """Questions of one name that may be granted together: new work, as a whole, nothing held back."""

    __slots__ = ("bytes", "count", "messages", "name")

    def __init__(self, name: Name) -> None:
        self.name = name
        #: How many questions, and what they ask for in all.
        self.count = self.messages = self.bytes = 0


class Decision(NamedTuple):
    """Granted (whole, or the part in `messages` and `bytes`) or refused."""

    granted: bool
    messages: int
    bytes: int
    #: False where no limit applies to the name.
    governed: bool = True
    #: The most stringent level, where it cut or refused.
    limited_by: Level | None = None
    group: str | None = None
    dimension: Dimension | None = None
    #: When asking again succeeds, if nobody took it meanwhile and no share was cut.
    retry_after_ms: int = 0
    #: Of the limit that cut: whole units per second (cluster-wide for a group), for headers.
    quota: int = 0
    #: Of the limit that cut: whole units left in this broker's bucket.
    remaining: int = 0


@dataclass(frozen=True, slots=True)
class TooLarge:
    """More than `shares.request_max_s` seconds of the whole quota: never granted (HTTP 413)."""

    level: Level
    group: str | None
    dimension: Dimension
    #: The most that could be asked at once, in whole units.
    most: int


@dataclass(frozen=True, slots=True)
class PoliciesUnknown:
    """No policies are known yet, so nobody can say what may pass (HTTP 503); asking again helps."""

    retry_after_ms: int


Answer = Decision | TooLarge | PoliciesUnknown


def ungoverned(messages: int, size: int) -> Decision:
    """Grant everything to a name that nobody attached (design 5)."""
    return Decision(granted=True, messages=messages, bytes=size, governed=False)
