"""What there is to know of one call: for the router, for tokens and for people.

`routes` holds the list of them; `openapi` writes them down for machines.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from rgd.adapters.http.reply import JSON, Handler, HotHandler, StreamHandler
from rgd.adapters.http.route_table import Route
from rgd.ports.door import Scope


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A body of one of several types, which one union of msgspec could not tell apart."""

    types: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """A body that is an array of a type or an `AnyOf`."""

    item: Any


@dataclass(frozen=True, slots=True)
class ResponseSpec:
    """One answer: when it is given, and what it holds."""

    when: str
    #: The type of its body (or `AnyOf`, `ArrayOf`); None: it has none.
    body: Any = None
    content_type: str = JSON
    #: Another content type that it may have, where the caller asks for it.
    also: str | None = None
    #: Names of the headers that only this answer carries.
    headers: tuple[str, ...] = ()
    #: Names of headers that it carries only sometimes.
    headers_if_any: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """One name that may follow the question mark."""

    name: str
    means: str
    #: JSON Schema of its value.
    schema: Mapping[str, Any]
    required: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One call of the API."""

    #: `*`: every method.
    method: str
    #: With variable parts in braces; a last one of `{name:path}` may hold slashes, or nothing.
    path: str
    #: What a token must be good for; None: no token needed.
    scope: Scope | None
    summary: str
    #: By status. Those that any call may give are added by `openapi`.
    answers: Mapping[int, ResponseSpec]
    _: KW_ONLY
    #: Of the plane; None: connections answer it (`hot`).
    handler: Handler | None = None
    #: The type of its JSON body; None: it takes none.
    body: Any = None
    #: Whether it may be called without a body.
    body_required: bool = True
    #: What it takes after the question mark; other names are ignored.
    query: tuple[Query, ...] = ()
    #: Answers a GET that accepts `text/event-stream`, in place of `handler`.
    stream: StreamHandler | None = None
    #: Whether connections of the probes' reserve may ask for it.
    is_probe: bool = False

    def route(self, handler: HotHandler | None = None) -> Route:
        """What connections have to know of it."""
        return Route(
            self.method,
            self.path,
            self.scope,
            is_probe=self.is_probe,
            takes_body=self.body is not None,
            takes_query=bool(self.query),
            handler=handler,
        )


def read(
    path: str,
    handler: Handler,
    summary: str,
    answers: Mapping[int, ResponseSpec],
    query: tuple[Query, ...] = (),
) -> Endpoint:
    """A GET that shows something to whoever has the scope `read`."""
    return Endpoint("GET", path, Scope.READ, summary, answers, handler=handler, query=query)
