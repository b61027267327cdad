"""What there is to know of one call: for the router, for tokens and for people.

An `Endpoint` stands above the method that answers it, as a decorator; the first line of the method's docstring is its
summary. `plane` holds the list of all; `openapi` writes them down for machines.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, TypeVar

from msgspec import Struct

from rgd.adapters.http.reply import JSON, Handler, HotHandler
from rgd.adapters.http.route_table import Route
from rgd.ports.door import Scope

_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ResponseSpec:
    """An answer that is more than a body of JSON."""

    #: The type of its body, perhaps a union of types that msgspec could not tell apart; None: it has none.
    body: Any = None
    #: When it is given, where its status does not say enough.
    when: str = ""
    _: KW_ONLY
    content_type: str = JSON
    #: Another content type that it may have, where the caller asks for it.
    also: str | None = None
    #: Names of the headers that only this answer carries.
    headers: tuple[str, ...] = ()
    #: Names of headers that it carries only sometimes.
    headers_if_any: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One call of the API."""

    #: `*`: every method.
    method: str
    #: With variable parts in braces; a last one of `{name:path}` may hold slashes, or nothing.
    path: str
    #: What a token must be good for; None: no token needed.
    scope: Scope | None
    #: By status, a body as in `ResponseSpec`, or such a one. Those that any call may give are added by `openapi`.
    answers: Mapping[int, Any]
    #: Statuses of further errors.
    errors: tuple[int, ...] = ()
    _: KW_ONLY
    summary: str = ""
    #: Of the plane; None: connections answer it (`hot`).
    handler: Handler | None = None
    #: The type of its JSON body; None: it takes none.
    body: Any = None
    #: Whether it may be called without a body.
    body_required: bool = True
    #: Types whose fields are what it takes after the question mark.
    query: tuple[type[Struct], ...] = ()
    #: Whether connections of the probes' reserve may ask for it.
    is_probe: bool = False

    def __call__(self, method: _Method) -> _Method:
        """Note of a method that it answers this call."""
        summary, _, _ = (method.__doc__ or "").partition("\n")
        vars(method)["endpoint"] = replace(self, summary=summary)
        return method

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


def described(calls: type) -> dict[str, Endpoint]:
    """The calls that a class answers, by the names of its methods."""
    methods = vars(calls).items()
    return {name: one.endpoint for name, one in methods if hasattr(one, "endpoint")}


def answered(calls: object) -> Iterator[Endpoint]:
    """The calls that an object answers."""
    for name, endpoint in described(type(calls)).items():
        yield replace(endpoint, handler=getattr(calls, name))


def read(path: str, shown: Any, *errors: int, query: tuple[type[Struct], ...] = ()) -> Endpoint:
    """A GET that shows something to whoever has the scope `read`."""
    return Endpoint("GET", path, Scope.READ, {200: shown}, errors, query=query)


def change(method: str, path: str, *errors: int, shown: Any = None, **more: Any) -> Endpoint:
    """What needs the scope `admin`: done without a word (204), or with something to show."""
    answers = {204: None} if shown is None else {200: shown}
    return Endpoint(method, path, Scope.ADMIN, answers, errors, **more)
