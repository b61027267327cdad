"""`/v1/log`: entries of the usage log, as a broker gives them to a consumer, and readers' positions.

Law: strict, as all of `/v1`; an answer has at most `ENTRIES_MAX` entries and, where they are large, ends
after `ENTRIES_BYTES_MAX` bytes. `next_index` is where to go on, and what to acknowledge.

The log itself is `rgd.ports.log_door`'s; here are only names and numbers.
"""

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta, Struct

from rgd.adapters.http.answers import Reason
from rgd.adapters.http.endpoint import ArrayOf, Endpoint, Query, ResponseSpec, read
from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply
from rgd.adapters.http.shown import cut
from rgd.adapters.http.strict import BodyDecoder
from rgd.adapters.http.usual import BAD_BODY, BAD_NAME
from rgd.core.policies.names import check_entity
from rgd.ports.door import Scope
from rgd.ports.log_door import (
    CURSORS_MAX,
    ENTRIES_BYTES_MAX,
    ENTRIES_MAX,
    CursorView,
    EntriesView,
    From,
    LogDoor,
)

LIMIT_DEFAULT: Final = 100
#: Indexes and times are 64 bit numbers.
NUMBER_MAX: Final = (1 << 63) - 1

CURSOR: Final = "/v1/log/cursors/{cursor}"

_INTEGER: Final = {"type": "integer", "minimum": 0, "maximum": NUMBER_MAX}
_QUERY: Final = (
    Query("index", "Begin at this index; 0 by default.", _INTEGER),
    Query("time", "Begin at the first entry at or after this, ms since 1970.", _INTEGER),
    Query("cursor", "Begin where this reader acknowledged.", {"type": "string"}),
    Query(
        "limit",
        f"Most entries; fewer come where they are large (after {ENTRIES_BYTES_MAX} bytes).",
        {"type": "integer", "minimum": 1, "maximum": ENTRIES_MAX, "default": LIMIT_DEFAULT},
    ),
    Query(
        "expose",
        "Whether to show what the broker added in front of each entry. The daemon's "
        "`log.exposingBrokerEntryMetadataToClientEnabled` is the default, and the most that is allowed.",
        {"type": "string", "enum": ["true", "false"]},
    ),
)
_STARTS: Final = ("index", "time", "cursor")
_NAMES: Final = frozenset(query.name for query in _QUERY)

_NO_CURSOR: Final = {404: ResponseSpec("No reader of this name has acknowledged anything.", Reason)}
_NO_DISK: Final = {503: ResponseSpec("The log's disk or its tier refuses now.", Reason)}
_REFUSED: Final = {
    409: ResponseSpec(
        f"There are {CURSORS_MAX} cursors already; or the index is not reached.", Reason
    )
}


class CursorBody(Struct, forbid_unknown_fields=True):
    """How far a reader has come."""

    index: Annotated[
        int,
        Meta(
            ge=0, le=NUMBER_MAX, description="the index of the first entry that is not dealt with"
        ),
    ]


_body = BodyDecoder(CursorBody)


class Log:
    """Answers for the usage log."""

    def __init__(self, door: LogDoor) -> None:
        self._door = door

    async def entries(self, call: Call) -> Reply:
        """Entries from a position on."""
        query = _parameters(call)
        limit = _number(query.get("limit", str(LIMIT_DEFAULT)), "limit", 1, ENTRIES_MAX)
        expose = query.get("expose")
        if expose not in {None, "true", "false"}:
            raise BadBody(f"expose: expected true or false, got {cut(str(expose))}")
        view = await self._door.entries(
            self._start(query), limit, expose=None if expose is None else expose == "true"
        )
        return json_reply(view)

    async def cursors(self, _call: Call) -> Reply:
        """Every reader's position."""
        return json_reply(self._door.cursors())

    async def acknowledge(self, call: Call) -> Reply:
        """Keep a reader's position."""
        name = check_entity(call.path["cursor"], "cursor")
        return json_reply(await self._door.acknowledge(name, _body.decode(call.body).index))

    async def forget(self, call: Call) -> Reply:
        """Keep it no longer."""
        await self._door.forget(check_entity(call.path["cursor"], "cursor"))
        return NO_CONTENT

    def _start(self, query: dict[str, str]) -> From:
        if "time" in query:
            return From(time_ms=_number(query["time"], "time", 0, NUMBER_MAX))
        if "cursor" in query:
            return From(self._door.cursor(check_entity(query["cursor"], "cursor")).index)
        return From(_number(query.get("index", "0"), "index", 0, NUMBER_MAX))


def log_endpoints(log: Log) -> Iterator[Endpoint]:
    """The calls."""
    about = "Entries of the usage log from an index, a time or a cursor, oldest first."
    answers = {
        200: ResponseSpec("The entries, and where to go on.", EntriesView),
        400: ResponseSpec("A parameter is malformed, unknown or contradicts another.", Reason),
        403: ResponseSpec("`expose=true`, and the daemon does not allow it.", Reason),
        **_NO_CURSOR,
        **_NO_DISK,
    }
    yield read("/v1/log/entries", log.entries, about, answers, _QUERY)
    about = "How far the readers of the usage log have come, and what they hold back."
    answers = {200: ResponseSpec("By name.", ArrayOf(CursorView))}
    yield read("/v1/log/cursors", log.cursors, about, answers)
    about = "Acknowledge entries of the usage log: retention need not wait for them."
    answers = {200: ResponseSpec("Kept.", CursorView), **BAD_BODY, **_REFUSED, **_NO_DISK}
    yield Endpoint(
        "PUT", CURSOR, Scope.ADMIN, about, answers, handler=log.acknowledge, body=CursorBody
    )
    about = "Forget a reader of the usage log."
    answers = {204: ResponseSpec("Forgotten."), **BAD_NAME, **_NO_CURSOR, **_NO_DISK}
    yield Endpoint("DELETE", CURSOR, Scope.ADMIN, about, answers, handler=log.forget)


def _parameters(call: Call) -> dict[str, str]:
    """The query, strictly.

    Raises:
        BadBody: naming the parameter.
    """
    query: dict[str, str] = {}
    for name, value in call.query.items():
        if name not in _NAMES:
            expected = ", ".join(query.name for query in _QUERY)
            raise BadBody(f"{cut(name)}: unknown parameter; expected one of {expected}")
        if name in query:
            raise BadBody(f"{name}: expected once")
        query[name] = value
    starts = [name for name in _STARTS if name in query]
    if len(starts) > 1:
        raise BadBody(f"{starts[1]}: expected index, time or cursor, got {starts[0]} beside it")
    return query


def _number(text: str, name: str, low: int, high: int) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(NUMBER_MAX))
    number = int(text) if is_number else -1
    if not low <= number <= high:
        raise BadBody(f"{name}: expected an integer from {low} to {high}, got {cut(text)}")
    return number
