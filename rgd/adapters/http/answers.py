"""How an answer is written: the JSON of docs/http.md and the headers of a refusal.

A refusal carries `Retry-After` (RFC 9110, whole seconds rounded up), `RateLimit`
and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11: `q` the quota of
`w` seconds, `r` what is left, `t` seconds until there is more, `qu` the unit)
and the older `RateLimit-Limit`, `-Remaining` and `-Reset` (draft 03 to 06).

A grant carries the last five where a gateway asks for them (`grant_headers`).
The quota is the whole limit's (for a group: the cluster's), the rest is this
broker's. A policy is named `GROUP/KIND/DIMENSION`, because a group has a quota
for each; limits beside the groups are named by their level instead of a group.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from rgd.adapters.http.errors import status_of
from rgd.adapters.http.reply import NO_HEADERS, Reply, encode, json_reply
from rgd.adapters.http.shown import cut_reason
from rgd.core.backlog.model import QuotaType
from rgd.core.buckets.decision import (
    Answer,
    Decision,
    Level,
    OverBacklog,
    PoliciesUnknown,
    TooLarge,
)
from rgd.core.buckets.headroom import Headroom
from rgd.core.units import Dimension, Kind
from rgd.errors import RgdError

#: Largest integer of a structured field (RFC 8941): quotas may have one digit more.
FIELD_INTEGER_MAX: Final = 999_999_999_999_999

_QUOTA_UNIT: Final = {Dimension.MESSAGES: "requests", Dimension.BYTES: "content-bytes"}


class AcquireAnswer(Struct, omit_defaults=True, gc=False):
    """Granted, whole or in part, or refused; the limit is named only where one lowered or refused it."""

    granted: bool
    messages: int
    bytes: int
    governed: bool = True
    limited_by: Level | None = None
    group: str | None = None
    dimension: Dimension | None = None
    retry_after_ms: int | None = None
    #: Where `limited_by` is `backlog`: which limit of the quota, and whether to hold and ask again.
    quota_type: QuotaType | None = None
    held: bool | None = None
    #: Granted beyond the soft limit of a group, which is `group` unless that one lowered the answer.
    over: bool = False
    #: Only where the daemon is a shadow: what would have been answered instead.
    shadow: str | None = None


class ItemFault(Struct, gc=False):
    """What is wrong with one item of an array, in its place."""

    granted: bool
    status: int
    reason: str


class TooLargeAnswer(Struct, omit_defaults=True):
    """Asking for so much at once can never be granted."""

    reason: str
    limited_by: Level
    dimension: Dimension
    most: int
    group: str | None = None


class UnknownAnswer(Struct, omit_defaults=True):
    """Refused, because no policies are known yet; no limit was met."""

    granted: bool
    messages: int
    bytes: int
    reason: str
    retry_after_ms: int
    #: In an array, where no status line says it.
    status: int | UnsetType = UNSET


class Reason(Struct):
    """What is wrong with the call."""

    reason: str


class ItemReason(Struct, gc=False):
    """What is wrong with one item of an array, in its place; nothing was done about it."""

    status: int
    reason: str


def item_reason(error: RgdError) -> ItemReason:
    """The answer to an item at fault.

    Raises:
        RgdError: the error itself, if nobody foresaw it.
    """
    status = status_of(error)
    if status is None:
        raise error
    return ItemReason(status, cut_reason(str(error)))


def answer_of(decision: Decision) -> AcquireAnswer:
    """The answer to one question."""
    is_limited = decision.limited_by is not None
    return AcquireAnswer(
        decision.granted,
        decision.messages,
        decision.bytes,
        decision.governed,
        decision.limited_by,
        decision.group,
        decision.dimension if is_limited else None,
        decision.retry_after_ms if is_limited else None,
        over=decision.over,
    )


def over_headers(decision: Decision) -> Mapping[str, str]:
    """The header of a grant beyond a soft limit."""
    return {"X-Rgd-Over": decision.group or ""} if decision.over else NO_HEADERS


def reply_of(answer: Answer, kind: Kind) -> Reply:
    """The reply to a single question: 200, or what says why not and when to come back."""
    if isinstance(answer, Decision):
        body = encode(answer_of(answer))
        if answer.granted:
            return Reply(200, body, over_headers(answer))
        return Reply(429, body, refusal_headers(answer, kind))
    if isinstance(answer, TooLarge):
        told = TooLargeAnswer(
            too_large_reason(answer), answer.level, answer.dimension, answer.most, answer.group
        )
        return json_reply(told, status=413)
    headers = {"Retry-After": str(_wait_s(answer.retry_after_ms))}
    if isinstance(answer, OverBacklog):
        # Without `RateLimit`, because no rate was met.
        return json_reply(backlog_answer(answer), status=429, headers=headers)
    # Not 429, as no limit was met.
    return json_reply(unknown_answer(answer), status=503, headers=headers)


def _wait_s(milliseconds: int) -> int:
    return max(1, -(-milliseconds // 1000))


def backlog_answer(answer: OverBacklog) -> AcquireAnswer:
    """The answer for a topic whose backlog is over its quota; a time has no dimension."""
    return AcquireAnswer(
        granted=False,
        messages=0,
        bytes=0,
        limited_by=Level.BACKLOG,
        dimension=Dimension.BYTES if answer.quota_type is QuotaType.SIZE else None,
        retry_after_ms=answer.retry_after_ms,
        quota_type=answer.quota_type,
        held=answer.held,
    )


def too_large_reason(answer: TooLarge) -> str:
    """Why so much can never be granted, and how much could be."""
    whose = f"group {answer.group!r}" if answer.group is not None else f"the {answer.level}"
    return (
        f"{answer.dimension}: expected at most {answer.most} at once: "
        f"more would take {whose} over shares.request_max_s seconds of its quota"
    )


def unknown_answer(answer: PoliciesUnknown, status: int | UnsetType = UNSET) -> UnknownAnswer:
    """The answer while no policies are known."""
    return UnknownAnswer(
        granted=False,
        messages=0,
        bytes=0,
        reason="no policies are known yet: the daemon has not read them (policies.unknown is deny)",
        retry_after_ms=answer.retry_after_ms,
        status=status,
    )


def refusal_headers(decision: Decision, kind: Kind) -> Mapping[str, str]:
    """When to come back, and what limit it was."""
    wait_s = _wait_s(decision.retry_after_ms)
    name = f"{decision.group or decision.limited_by or 'limit'}/{kind}"
    dimension = decision.dimension or Dimension.MESSAGES
    limit = _limit_headers(name, dimension, decision.quota, decision.remaining, wait_s)
    return {"Retry-After": str(wait_s), **limit}


def grant_headers(room: Headroom, kind: Kind) -> Mapping[str, str]:
    """The limit of a grant that is nearest to refusing; `t` is when its bucket will be full."""
    name = f"{room.group or room.level}/{kind}"
    return _limit_headers(name, room.dimension, room.quota, room.remaining, room.full_in_s)


def _limit_headers(
    name: str, dimension: Dimension, quota: int, remaining: int, reset_s: int
) -> dict[str, str]:
    quota, remaining = min(quota, FIELD_INTEGER_MAX), min(remaining, FIELD_INTEGER_MAX)
    policy = f'"{name}/{dimension}"'
    return {
        "RateLimit-Policy": f'{policy};q={quota};qu="{_QUOTA_UNIT[dimension]}";w=1',
        "RateLimit": f"{policy};r={remaining};t={reset_s}",
        "RateLimit-Limit": str(quota),
        "RateLimit-Remaining": str(remaining),
        "RateLimit-Reset": str(reset_s),
    }
