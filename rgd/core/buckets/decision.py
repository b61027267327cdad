"""Requests and answers; a refusal is an answer, not an error.

The fields are those of `POST /v1/acquire` (docs/http.md), with names already
checked and made full. Requests and decisions are named tuples, because a named
tuple is made in less than half the time of a frozen dataclass.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from rgd.core.backlog.model import QuotaType
from rgd.core.units import Dimension, Kind, Pair


class Level(StrEnum):
    """The levels of a decision, in their order."""

    BROKER = "broker"
    RESOURCE_GROUP = "resource_group"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"
    #: A topic's backlog exceeds its quota. It has no bucket, and is looked at first.
    BACKLOG = "backlog"


#: The `held` of a caller that holds nothing back. The fast path compares by identity.
NOTHING: Final = Pair()

#: Kind, group, namespace, topic, subscription: the key of a chain of levels.
Name = tuple[Kind, str | None, str | None, str | None, str | None]


class Request(NamedTuple):
    """One request for permits. Its fields are the arguments of `Limiter.decide`."""

    kind: Kind = Kind.PUBLISH
    messages: int = 1
    bytes: int = 0
    #: A group named directly; if None, the names below are resolved.
    group: str | None = None
    #: Full names, `tenant/namespace` and `persistent://tenant/namespace/topic`.
    namespace: str | None = None
    topic: str | None = None
    subscription: str | None = None
    #: The caller accepts a part of the amounts, for example a dispatcher's read.
    partial: bool = False
    #: 1 for new work, more for a retry of work refused before, 0 if the caller gave no attempt.
    attempt: int = 1
    #: What the caller holds back instead of retrying.
    held: Pair = NOTHING


class Together:
    """Requests for one name that may be granted together: new whole requests, nothing held back."""

    __slots__ = ("bytes", "count", "messages", "name")

    def __init__(self, name: Name) -> None:
        self.name = name
        #: Number of requests, and their total amounts.
        self.count = self.messages = self.bytes = 0


class Decision(NamedTuple):
    """Granted (whole, or the part in `messages` and `bytes`) or refused."""

    granted: bool
    messages: int
    bytes: int
    #: False if no limit applies to the name.
    governed: bool = True
    #: The most stringent level, if it reduced or refused the request.
    limited_by: Level | None = None
    group: str | None = None
    dimension: Dimension | None = None
    #: Milliseconds until a retry succeeds, if no other caller takes the tokens and no share
    #: decreases; at most half a round at a low share (`rgd.core.buckets.levels`).
    retry_after_ms: int = 0
    #: Whole units per second of the limit in `limited_by` (cluster-wide for a group), for headers.
    quota: int = 0
    #: Whole units left in this broker's bucket of that limit.
    remaining: int = 0
    #: Granted beyond the soft limit of a group (`group`, unless another one lowered the grant).
    over: bool = False


@dataclass(frozen=True, slots=True)
class TooLarge:
    """More than `shares.request_max_s` seconds of the whole quota: never granted (HTTP 413)."""

    level: Level
    group: str | None
    dimension: Dimension
    #: The largest possible request, in whole units.
    most: int


@dataclass(frozen=True, slots=True)
class PoliciesUnknown:
    """No policies are known yet, so nothing can be decided (HTTP 503); retry later."""

    retry_after_ms: int


class OverBacklog(NamedTuple):
    """Publishing is held or refused, because the topic's backlog exceeds its quota (HTTP 429)."""

    quota_type: QuotaType
    #: Whether the caller should hold its messages and retry. Otherwise it should give them up.
    held: bool
    #: Milliseconds until the next check of backlogs.
    retry_after_ms: int


Answer = Decision | TooLarge | PoliciesUnknown | OverBacklog


def ungoverned(messages: int, size: int) -> Decision:
    """Grant everything to a name that is attached to no group and has no limit."""
    return Decision(granted=True, messages=messages, bytes=size, governed=False)
