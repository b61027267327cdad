"""What a call is asked with and what it answers, without knowing the HTTP library.

`fast_lane` and `plane` make a `Call` of a request, and `fast_lane` sends a `Reply`; everything in
between handles these two, so it can be tested by calling it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

import msgspec

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"

#: Plain dictionaries, because they cross between processes; nobody writes to them.
NO_HEADERS: Final[Mapping[str, str]] = {}
NO_QUERY: Final[Mapping[str, str]] = {}

encode = msgspec.json.Encoder().encode


class Call(NamedTuple):
    """One request, its route and token already dealt with."""

    #: The variable parts of the path, decoded.
    path: Mapping[str, str]
    headers: Mapping[str, str]
    #: Whole, and within `body_max_bytes`; empty where the call takes none.
    body: bytes
    #: After the question mark, decoded; empty where the call takes none.
    query: Mapping[str, str] = NO_QUERY
    #: The path as it came, for those to whom `+` and `%2B` are two things.
    raw_path: str = ""


class Reply(NamedTuple):
    """A status, a body and the headers that belong to this answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = NO_HEADERS
    content_type: str = JSON


#: A reply, or for long work something that waits for it.
Answering = Reply | Awaitable[Reply]

#: One call of the API. Raises what `errors` has a status for.
Handler = Callable[[Call], Awaitable[Reply]]

#: A call that connections answer (`hot`): no coroutine, unless the work is long.
HotHandler = Callable[[Call], Answering]

#: Renders the metrics for an Accept header: the page and its content type.
MetricsPage = Callable[[str], Awaitable[tuple[bytes, str]]]


class Observer(Protocol):
    """Told of every answer: how `rgd.app` counts and times requests."""

    def __call__(self, route: str, status: int, seconds: float) -> None:
        """Count one answer.

        Args:
            route: the path as `plane` lists it, or `other` where none matched.
            status: of the answer, bad input included.
            seconds: from the whole request, body included, until its answer is made or its stream begins.
        """


def json_reply(
    value: object, *, status: int = 200, headers: Mapping[str, str] = NO_HEADERS
) -> Reply:
    """Answer with a value as JSON."""
    return Reply(status, encode(value), headers)


def says_true(call: Call, name: str) -> bool:
    """Whether a query says true, in any case; anything else is false, as in Pulsar."""
    return call.query.get(name, "").lower() == "true"


NO_CONTENT: Final = Reply(204)


def array_of(written: Iterable[bytes]) -> bytes:
    """A JSON array of entries, or of stretches of entries, that are JSON already."""
    return b"[%b]" % b",".join(written)
