"""What is asked and what is answered, and how both are written for the daemon.

Laws: a question always says `attempt`; what a newer daemon adds to an answer is ignored. Amounts are
whole numbers from 0 on, and no answer grants more than its question asked for: one that does is no answer.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

from rgd.client.errors import BadSetting

#: Largest amount of a question: what the daemon counts in (int64).
AMOUNT_MAX: Final = (1 << 63) - 1

#: An amount or a time in an answer.
Count = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]


class Source(StrEnum):
    """Who decided."""

    DAEMON = "daemon"
    LEASE = "lease"
    #: Nobody: no answer came in time, so `ClientSettings.when_away` decided.
    AWAY = "away"


class Name(NamedTuple):
    """Who asks: a tenant and namespace, or a group directly; as in `POST /v1/acquire`."""

    tenant: str | None = None
    namespace: str | None = None
    group: str | None = None
    topic: str | None = None
    subscription: str | None = None
    kind: str = "publish"


class Question(NamedTuple):
    """May so much pass?"""

    name: Name
    messages: int = 1
    bytes: int = 0
    partial: bool | None = None
    #: 1: new work; more: work that was refused before.
    attempt: int = 1


class Answer(Struct, frozen=True, gc=False):
    """Granted, whole or in part, or refused; as the daemon says it, and who decided."""

    granted: bool
    #: How much may pass.
    messages: Count = 0
    bytes: Count = 0
    #: False: no limit applies to the name.
    governed: bool = True
    #: Granted, but above a soft limit.
    over: bool = False
    limited_by: str | None = None
    group: str | None = None
    dimension: str | None = None
    retry_after_ms: Count | None = None
    quota_type: str | None = None
    held: bool | None = None
    #: Of an item that the daemon refuses to decide, and why.
    status: int = 200
    reason: str | None = None
    source: Source = Source.DAEMON


class LeaseAnswer(Struct):
    """What the daemon answers about a lease; all amounts are what was newly granted."""

    #: Part of the path of later calls.
    lease_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")] | None = None
    #: Null: nothing limits this dimension.
    messages: Count | None = 0
    bytes: Count | None = 0
    expires_in_ms: Count = 0
    refresh_in_ms: Count = 0
    over: bool = False
    limited_by: str | None = None
    group: str | None = None
    dimension: str | None = None
    retry_after_ms: Count | None = None
    quota_type: str | None = None
    held: bool | None = None


class _Named(Struct, omit_defaults=True):
    """A `Name` as the daemon reads it."""

    tenant: str | None = None
    namespace: str | None = None
    group: str | None = None
    topic: str | None = None
    subscription: str | None = None
    kind: str = "publish"


class _Asked(_Named, omit_defaults=True):
    """An item of `POST /v1/acquire`; no default that the daemon might not know."""

    partial: bool | None = None
    bytes: int = 0
    messages: int | None = None
    attempt: int | None = None


class _Settled(_Named, omit_defaults=True):
    """An item of `POST /v1/settle`."""

    messages: int = 0
    bytes: int = 0


class _Reason(Struct):
    reason: str = ""


_Decoded = TypeVar("_Decoded")

_encode = msgspec.json.Encoder().encode
_decode_answers = msgspec.json.Decoder(list[Answer]).decode
_decode_reason = msgspec.json.Decoder(_Reason).decode


def acquire_body(questions: list[Question]) -> bytes:
    """The array of these questions."""
    return _encode(
        [
            _Asked(*name, partial, size, messages, attempt)
            for name, messages, size, partial, attempt in questions
        ]
    )


def settle_body(unused: dict[Name, tuple[int, int]]) -> bytes:
    """The array that gives these amounts back."""
    return _encode([_Settled(*name, *amounts) for name, amounts in unused.items()])


def decoded(decode: Callable[[bytes], _Decoded], body: bytes) -> _Decoded | None:
    """What a body says; None where no daemon sends such bytes: unlike the type, no UTF-8, or nested too deep."""
    try:
        return decode(body)
    except (ValueError, RecursionError):
        return None


def answers_of(body: bytes, questions: Sequence[Question]) -> list[Answer] | None:
    """The answers to these questions; None where the body is something else."""
    answers = decoded(_decode_answers, body)
    if answers is None or len(answers) != len(questions):
        return None
    for answer, asked in zip(answers, questions, strict=True):
        if answer.messages > asked.messages or answer.bytes > asked.bytes:
            return None
    return answers


def reason_of(body: bytes) -> str:
    """Why a call was refused, in the daemon's words; empty where it says none."""
    told = decoded(_decode_reason, body)
    return "" if told is None else told.reason


def check_name(name: Name) -> None:
    """Refuse what no JSON can say, where the mistake is: it would end the work of all who ask.

    Raises:
        BadSetting: a part is no text, or has half of a character (WSGI and the file system make such texts).
    """
    try:
        _encode(name)
        # Bytes, for one, are written as another text; only texts can be joined.
        "".join(part for part in name if part is not None)
    except (TypeError, UnicodeEncodeError) as exc:
        raise BadSetting(f"name: expected texts in UTF-8, got {name!a:.200}") from exc


def check_questions(questions: Iterable[Question]) -> None:
    """Refuse all of these, names too, if one is none; before the first is asked. Raises as `check_question`."""
    for one in questions:
        check_question(one)
        check_name(one.name)


def check_question(question: Question) -> None:
    """Refuse, where the mistake is, what is no question; not its name, which a lease has checked.

    Raises:
        BadSetting
    """
    check_amounts(question.messages, question.bytes)
    attempt, partial = question.attempt, question.partial
    if type(attempt) is not int or not 1 <= attempt <= AMOUNT_MAX:
        raise BadSetting(
            f"attempt: expected an integer from 1 to {AMOUNT_MAX}, got {attempt!r:.60}"
        )
    if partial is not None and type(partial) is not bool:
        raise BadSetting(f"partial: expected True, False or None, got {partial!r:.60}")


def check_amounts(messages: int, size: int) -> None:
    """Refuse what no daemon would take, where the mistake is.

    Raises:
        BadSetting: an amount is negative, too large or no integer.
    """
    for field, amount in (("messages", messages), ("bytes", size)):
        if type(amount) is not int or not 0 <= amount <= AMOUNT_MAX:
            raise BadSetting(
                f"{field}: expected an integer from 0 to {AMOUNT_MAX}, got {amount!r:.60}"
            )
