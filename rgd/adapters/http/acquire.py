"""`POST /v1/acquire`: may so much pass? One question, or many in an array.

Law: one answer for each question, in order; a fault of one item stands in its
place and stops no other. The daemon answers from its own memory, so nothing
here waits; a long array is read (`array_body`) and answered in slices (`turns`)
between which other callers are served, so it is not one decision.

Names become full ones once and are then remembered, so that a topic that is
asked for again costs no parsing. The path of one question is kept short: decode
typed, look the names up, ask, encode.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple

from rgd.adapters.http.answers import (
    AcquireAnswer,
    ItemFault,
    Reason,
    TooLargeAnswer,
    UnknownAnswer,
    answer_of,
    backlog_answer,
    item_reason,
    reply_of,
    too_large_reason,
    unknown_answer,
)
from rgd.adapters.http.array_body import ArrayReader, is_array
from rgd.adapters.http.bodies import AcquireBody, LeaseBody, SettleBody
from rgd.adapters.http.endpoint import Endpoint, ResponseSpec
from rgd.adapters.http.errors import BadBody, NotGoverned
from rgd.adapters.http.reply import Answering, Call, Reply, array_of, encode
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.shadow import Shadow, shadow_reply
from rgd.adapters.http.turns import SHORT_BYTES, SLICE_WORK, Turns
from rgd.adapters.http.usual import GRANT_HEADERS, TAKING
from rgd.core.buckets.decision import (
    NOTHING,
    Answer,
    Decision,
    Name,
    OverBacklog,
    PoliciesUnknown,
    Request,
    Together,
    TooLarge,
)
from rgd.core.policies.names import (
    check_entity,
    check_subscription,
    namespace_of,
    namespace_of_topic,
    parse_topic,
    topic_of,
)
from rgd.core.units import Kind, Pair
from rgd.errors import RgdError
from rgd.ports.answers import Answers
from rgd.ports.door import Scope, Ungoverned

#: Names remembered; the one not asked for longest goes. At most some 50 MB of longest names.
NAMES_MAX: Final = 16_384

#: Items of an array that are answered before others get their turn.
SLICE_ITEMS: Final = SLICE_WORK

#: Names of items that are granted together.
TOGETHER_NAMES: Final = 2 * SLICE_ITEMS

#: Answers to whole grants that are kept encoded; they start afresh when there are more.
GRANTED_MAX: Final = 16_384

#: Work of an item at fault, beside one for so many of its bytes: its error text has to be made.
_FAULT_WORK: Final = 4
_FAULT_BYTES: Final = 256

#: Work of the first question of a name, beside one: its buckets, counters and share are made.
_FIRST_WORK: Final = 15


#: What a decision says beside its amounts where they were granted and there is nothing else to tell.
_PLAIN: Final = Decision(granted=True, messages=0, bytes=0)[3:]

Items = list[AcquireBody | msgspec.Raw]

_array = ArrayReader(AcquireBody)
_one = _array.one


class Acquire:
    """Asks the daemon on behalf of HTTP callers."""

    def __init__(
        self,
        daemon: Answers,
        settings: HttpSettings,
        turns: Turns | None = None,
        shadow: Shadow | None = None,
    ) -> None:
        self._ask_daemon = daemon.acquire
        self._grants_together = daemon.acquire_together
        self._names_resolved = daemon.names_resolved
        self._batch_max = settings.batch_max
        #: Answers in place of refusals; None: this daemon refuses.
        self._shadow = shadow
        self._denies_ungoverned = settings.ungoverned == Ungoverned.DENY and shadow is None
        self._turns = turns or Turns()

    @Endpoint(
        "POST",
        "/v1/acquire",
        Scope.QUERY,
        {
            200: ResponseSpec(
                AcquireAnswer | list[AcquireAnswer | ItemFault | UnknownAnswer],
                "Granted, whole or in part; for an array the answers in order.",
                headers_if_any=GRANT_HEADERS,
            ),
            413: TooLargeAnswer | Reason,
            **TAKING,
        },
        (404,),
        body=AcquireBody | list[AcquireBody],
    )
    def answer(self, call: Call) -> Answering:
        """May so much pass? One question, or many in an array."""
        body = call.body
        if body[:1] != b"{" and is_array(body):
            return self._answer_many(body)
        return self.reply_to(_one.decode(body))

    def reply_to(self, asked: AcquireBody) -> Reply:
        """Answer one question."""
        request = request_of(asked)
        answer = self._ask_daemon(request)
        if type(answer) is Decision and answer[3:] == _PLAIN and answer.granted:
            return _granted_reply[answer[1:3]]
        self._check_governed(request, answer)
        if self._shadow is not None:
            return shadow_reply(self._shadow.answer(request, answer))
        return reply_of(answer, asked.kind or Kind.PUBLISH)

    def _answer_many(self, body: bytes) -> Answering:
        """Answer an array at once, if it is short or this turn is nobody's; else it waits, unread."""
        is_now = len(body) <= SHORT_BYTES or self._turns.take()
        return self._begin_many(body) if is_now else self._answer_later(body)

    async def _answer_later(self, body: bytes) -> Reply:
        await self._turns.next()
        answer = self._begin_many(body)
        return answer if isinstance(answer, Reply) else await answer

    def _begin_many(self, body: bytes) -> Answering:
        """Answer a slice of an array; where that is not all of it, the rest in further turns."""
        items = _array.read(body, self._batch_max)
        encoded, begin, tried = self._answer_part(items, 0, 0)
        if begin >= len(items):
            return Reply(body=array_of((encoded,)))
        return self._answer_rest(items, encoded, begin, tried)

    async def _answer_rest(self, items: Items, encoded: bytes, begin: int, tried: int) -> Reply:
        """Answer the items from `begin` on, a part in each turn."""
        written = [encoded]
        while begin < len(items):
            await self._turns.next()
            encoded, begin, tried = self._answer_part(items, begin, tried)
            written.append(encoded)
        return Reply(body=array_of(written))

    def _answer_part(self, items: Items, begin: int, tried: int) -> tuple[bytes, int, int]:
        """Answer the next items, together if all are granted, else some one by one.

        Returns the answers, where the next one begins, and up to where granting together was tried: each item once.
        """
        encoded = None
        if begin >= tried:
            encoded, tried = self._grant_together(items, begin)
        if encoded is not None:
            return encoded, tried, tried
        return *self._answer_slice(items, begin), tried

    def _grant_together(self, items: Items, begin: int) -> tuple[bytes | None, int]:
        """Grant the items from `begin` on at once and encode the answer; where that slice ends.

        Nothing is answered where each of the slice is to be answered by itself.
        """
        end = len(items)
        asked: dict[tuple[Any, ...], list[_Amounts]] = {}
        amounts: list[_Amounts] = []
        try:
            for fields in map(_fields, items[begin:]):
                key, amount = fields[:_AMOUNTS_AT], fields[_AMOUNTS_AT:]
                of_name = asked.get(key)
                if of_name is None:
                    if len(asked) >= TOGETHER_NAMES:
                        end = begin + len(amounts)
                        break
                    of_name = asked[key] = []
                of_name.append(amount)
                amounts.append(amount)
        except TypeError:  # one at fault: it is raw
            return None, end
        together = [_together(key, of_name) for key, of_name in asked.items()]
        if None in together or not self._grants_together(together):  # type: ignore[arg-type]  # no None in it
            return None, end
        return b",".join(map(_granted.__getitem__, amounts)), end

    def _answer_slice(self, items: Items, begin: int) -> tuple[bytes, int]:
        """Answer a slice of the items one by one; returns where the next one begins."""
        answers: list[_ItemAnswer] = []
        left, resolved = SLICE_ITEMS, self._names_resolved()
        while left > 0 and begin < len(items):
            answer = self._answer_item(items[begin])
            answers.append(answer)
            left -= _work_of_fault(items[begin]) if type(answer) is ItemFault else 1
            begin += 1
            if resolved != (now := self._names_resolved()):
                left -= _FIRST_WORK * (now - resolved)
                resolved = now
        return encode(answers)[1:-1], begin

    def _answer_item(self, item: AcquireBody | msgspec.Raw) -> "_ItemAnswer":
        try:
            request = request_of(_array.item(item))
            answer = self._ask_daemon(request)
            self._check_governed(request, answer)
        except RgdError as exc:
            fault = item_reason(exc)
            return ItemFault(granted=False, status=fault.status, reason=fault.reason)
        if self._shadow is not None:
            return self._shadow.answer(request, answer)
        if isinstance(answer, TooLarge):
            return ItemFault(granted=False, status=413, reason=too_large_reason(answer))
        if isinstance(answer, PoliciesUnknown):
            return unknown_answer(answer, 503)
        if isinstance(answer, OverBacklog):
            return backlog_answer(answer)
        return answer_of(answer)

    def _check_governed(self, request: Request, answer: Answer) -> None:
        """Raises NotGoverned where no limit applies and that is refused."""
        if self._denies_ungoverned and isinstance(answer, Decision) and not answer.governed:
            raise NotGoverned(str(request.topic or request.namespace or request.group))


def request_of(asked: AcquireBody) -> Request:
    """The question in the core's words.

    Raises:
        BadBody, InvalidName: a name is missing, malformed, or contradicts another.
    """
    fields = astuple(asked)
    messages, size = fields[_AMOUNTS_AT:]
    kind, group, namespace, topic, subscription, *rest = _without_amounts(fields[:_AMOUNTS_AT])
    # Not `Request(...)`, which calls a function in Python.
    return _new_request(
        Request,
        (
            kind,
            1 if messages is UNSET else messages,
            size or 0,
            group,
            namespace,
            topic,
            subscription,
            *rest,
        ),
    )


_new_request: Final = tuple.__new__

#: The fields of a question; TypeError where it is raw.
_fields: Final[Callable[[Any], tuple[Any, ...]]] = astuple


def name_of(asked: AcquireBody | SettleBody | LeaseBody) -> Name:
    """The full name that a body asks about.

    Raises:
        BadBody, InvalidName: a name is missing, malformed, or contradicts another.
    """
    kind = Kind.PUBLISH if asked.kind is UNSET else asked.kind
    names = (asked.namespace, asked.topic, asked.subscription)
    if asked.group is UNSET:
        return kind, None, *full_names(asked.tenant, *names)
    if asked.tenant is not UNSET or asked.namespace is not UNSET:
        raise BadBody("group: expected either group, or tenant and namespace, got both")
    return kind, asked.group, *_names_beside_group(asked.group, *names[1:])


#: Where the amounts begin among the fields of a question.
_AMOUNTS_AT: Final = AcquireBody.__struct_fields__.index("messages")
_Amounts = tuple[Any, ...]


@lru_cache(maxsize=NAMES_MAX)
def _without_amounts(fields: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a question says beside its amounts: a request's fields without them.

    Args:
        fields: the fields of a question but its amounts.

    Raises:
        BadBody, InvalidName: they are at fault (and not remembered).
    """
    asked = AcquireBody(*fields)
    kind = name_of(asked)[0]
    held = Pair(asked.held_messages or 0, asked.held_bytes or 0)
    return (
        *name_of(asked),
        kind is Kind.DISPATCH if asked.partial is UNSET else asked.partial,
        0 if asked.attempt is UNSET else asked.attempt,
        NOTHING if held == NOTHING else held,
    )


def _together(fields: tuple[Any, ...], amounts: list[_Amounts]) -> Together | None:
    """Questions that differ in their amounts only; None where each is to be answered by itself."""
    try:
        *name, partial, attempt, held = _without_amounts(fields)
    except RgdError:
        # Whoever answers it by itself makes the error text.
        return None
    if partial or attempt > 1 or held is not NOTHING:
        return None
    together = Together(tuple(name))
    together.count = len(amounts)
    messages, sizes = zip(*amounts, strict=True)
    try:
        together.messages, together.bytes = sum(messages), sum(sizes)
    except TypeError:  # one of them is absent
        together.messages = sum(1 if one is UNSET else one for one in messages)
        together.bytes = sum(size or 0 for size in sizes)
    return together


class _Granted(dict[_Amounts, bytes]):
    """What a question is answered that is granted whole, by its amounts."""

    def __missing__(self, amounts: _Amounts) -> bytes:
        messages, size = amounts
        answer = AcquireAnswer(True, 1 if messages is UNSET else messages, size or 0)  # noqa: FBT003 -- its first field
        if len(self) >= GRANTED_MAX:
            self.clear()
        self[amounts] = encoded = encode(answer)
        return encoded


_granted: Final = _Granted()


class _GrantedReply(dict[_Amounts, Reply]):
    """The same as a reply of its own."""

    def __missing__(self, amounts: _Amounts) -> Reply:
        if len(self) >= GRANTED_MAX:
            self.clear()
        self[amounts] = reply = Reply(body=_granted[amounts])
        return reply


_granted_reply: Final = _GrantedReply()

_ItemAnswer = AcquireAnswer | ItemFault | UnknownAnswer

_Given = str | UnsetType
#: Namespace, topic and subscription of a request, in full.
_Names = tuple[str | None, str | None, str | None]


@lru_cache(maxsize=NAMES_MAX)
def full_names(tenant: _Given, namespace: _Given, topic: _Given, subscription: _Given) -> _Names:
    """Namespace, topic and subscription in full, of what is said of them.

    Raises:
        BadBody, InvalidName: a name is missing, malformed, or contradicts another.
    """
    if tenant is UNSET:
        raise BadBody("tenant: expected a tenant and a namespace, or a group, got nothing")
    if namespace is UNSET:
        raise BadBody("namespace: expected a namespace beside tenant, got nothing")
    full = namespace_of(tenant, namespace)
    if topic is UNSET:
        _check_alone(subscription)
        return full, None, None
    return full, topic_of(full, topic), _checked(subscription)


@lru_cache(maxsize=NAMES_MAX)
def _names_beside_group(group: str, topic: _Given, subscription: _Given) -> _Names:
    check_entity(group, "group")
    if topic is UNSET:
        _check_alone(subscription)
        return None, None, None
    full = parse_topic(topic)
    return namespace_of_topic(full), full, _checked(subscription)


def _checked(subscription: _Given) -> str | None:
    return None if subscription is UNSET else check_subscription(subscription)


def _check_alone(subscription: _Given) -> None:
    if subscription is not UNSET:
        raise BadBody("subscription: expected a topic beside it, got nothing")


def _work_of_fault(item: AcquireBody | msgspec.Raw) -> int:
    size = len(memoryview(item)) if isinstance(item, msgspec.Raw) else 0
    return _FAULT_WORK + size // _FAULT_BYTES
