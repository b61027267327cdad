"""`/v1/log`: entries of the usage log, as a broker gives them to a consumer, and readers' positions.

Law: strict, as all of `/v1`; an answer has at most `ENTRIES_MAX` entries and, where they are large, ends
after `ENTRIES_BYTES_MAX` bytes. `next_index` is where to go on, and what to acknowledge.

The log itself is `rgd.ports.log_door`'s; here are only names and numbers.
"""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from rgd.adapters.http.endpoint import change, read
from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply
from rgd.adapters.http.strict import BodyDecoder, QueryReader
from rgd.core.policies.names import check_entity
from rgd.ports.log_door import (
    ENTRIES_BYTES_MAX,
    ENTRIES_MAX,
    CursorView,
    EntriesView,
    From,
    LogDoor,
    LogOff,
)

LIMIT_DEFAULT: Final = 100
#: Indexes and times are 64 bit numbers.
NUMBER_MAX: Final = (1 << 63) - 1

CURSOR: Final = "/v1/log/cursors/{cursor}"

Natural = Annotated[
    int, Meta(ge=0, le=NUMBER_MAX, description=f"an integer from 0 to {NUMBER_MAX}")
]


class EntriesQuery(Struct, forbid_unknown_fields=True):
    """Where to begin, and how much to show."""

    index: Annotated[Natural, Meta(title="Begin there; 0 by default.")] | UnsetType = UNSET
    time: (
        Annotated[Natural, Meta(title="Begin at the first entry from then on, ms since 1970.")]
        | UnsetType
    ) = UNSET
    cursor: Annotated[str, Meta(title="Begin where this reader acknowledged.")] | UnsetType = UNSET
    limit: Annotated[
        int,
        Meta(
            ge=1,
            le=ENTRIES_MAX,
            title=f"Most entries; fewer come where they are large (after {ENTRIES_BYTES_MAX} bytes).",
            description=f"an integer from 1 to {ENTRIES_MAX}",
        ),
    ] = LIMIT_DEFAULT
    expose: (
        Annotated[
            Literal["true", "false"],
            Meta(
                title="Whether to show what the broker added in front of each entry. The daemon's "
                "`log.exposingBrokerEntryMetadataToClientEnabled` is the default, and the most that is allowed.",
                description="true or false",
            ),
        ]
        | UnsetType
    ) = UNSET


_query = QueryReader(EntriesQuery)


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
    """Answers for the usage log; where there is none, each answer says so."""

    def __init__(self, door: LogDoor | None) -> None:
        self._opened = door

    @property
    def _door(self) -> LogDoor:
        if self._opened is None:
            raise LogOff
        return self._opened

    @read("/v1/log/entries", EntriesView, 403, 404, query=(EntriesQuery,))
    async def entries(self, call: Call) -> Reply:
        """Entries of the usage log from an index, a time or a cursor, oldest first."""
        query = _query.read(call.query)
        expose = None if query.expose is UNSET else query.expose == "true"
        view = await self._door.entries(self._start(query), query.limit, expose=expose)
        return json_reply(view)

    @read("/v1/log/cursors", list[CursorView], 404)
    async def cursors(self, _call: Call) -> Reply:
        """How far the readers of the usage log have come, and what they hold back."""
        return json_reply(self._door.cursors())

    @change("PUT", CURSOR, 404, 409, shown=CursorView, body=CursorBody)
    async def acknowledge(self, call: Call) -> Reply:
        """Acknowledge entries of the usage log: retention need not wait for them."""
        name = check_entity(call.path["cursor"], "cursor")
        return json_reply(await self._door.acknowledge(name, _body.decode(call.body).index))

    @change("DELETE", CURSOR, 404)
    async def forget(self, call: Call) -> Reply:
        """Forget a reader of the usage log."""
        await self._door.forget(check_entity(call.path["cursor"], "cursor"))
        return NO_CONTENT

    def _start(self, query: EntriesQuery) -> From:
        starts = [one for one in ("index", "time", "cursor") if getattr(query, one) is not UNSET]
        if len(starts) > 1:
            raise BadBody(f"{starts[1]}: expected index, time or cursor, got {starts[0]} beside it")
        if query.time is not UNSET:
            return From(time_ms=query.time)
        if query.cursor is not UNSET:
            return From(self._door.cursor(check_entity(query.cursor, "cursor")).index)
        return From(query.index or 0)
