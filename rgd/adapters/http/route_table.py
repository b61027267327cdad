"""Which call a request is for, found by method and path.

Laws: names between slashes are compared and given decoded, so a name may hold a slash that was written `%2F`. Where
two paths fit, the one with fewer variable parts counts, and of those the first. HEAD goes wherever GET goes.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

from rgd.adapters.http.errors import CallError, Overloaded
from rgd.adapters.http.reply import HotHandler
from rgd.ports.door import Scope

#: How the last part of a path is written that may hold slashes.
_REST: Final = ":path}"
#: The method of a call that takes every method.
_ANY: Final = "*"

NO_PARTS: Final[Mapping[str, str]] = {}


class Route(NamedTuple):
    """What a connection has to know of a call (`endpoint` has the rest): but for a handler, plain data."""

    #: As of `endpoint.Endpoint`.
    method: str
    path: str
    scope: Scope | None
    is_probe: bool
    #: Whether it takes a body, and what stands after the question mark.
    takes_body: bool
    takes_query: bool
    #: Answers at once, or makes an awaitable for what takes more than one slice of work; None: the plane answers.
    handler: HotHandler | None = None


class Found(NamedTuple):
    """A call and the variable parts of its path."""

    route: Route
    parts: Mapping[str, str]


class _Path:
    """One path, and its calls by method."""

    def __init__(self, path: str) -> None:
        self.methods: dict[str, Route] = {}
        parts = path.split("/")
        self.has_rest = path.endswith(_REST)
        self.length = len(parts)
        self._fixed = [(at, part) for at, part in enumerate(parts) if not part.startswith("{")]
        self.names = [(at, part.strip("{}")) for at, part in enumerate(parts) if part[:1] == "{"]
        if self.has_rest:
            self.names.pop()

    def add(self, route: Route) -> None:
        self.methods[route.method] = route
        if route.method == "GET":
            self.methods["HEAD"] = route

    def fits(self, parts: list[str]) -> bool:
        return all(parts[at] == part for at, part in self._fixed) and all(
            parts[at] for at, _ in self.names
        )


class RouteTable:
    """The calls of a list.

    Args:
        routes: the calls.
        is_whole: whether these are all that there are; else nobody can say yet what the others are.
    """

    def __init__(self, routes: Iterable[Route], *, is_whole: bool = True) -> None:
        self._is_whole = is_whole
        paths: dict[str, _Path] = {}
        for route in routes:
            paths.setdefault(route.path, _Path(route.path)).add(route)
        self._plain = {path: one for path, one in paths.items() if "{" not in path}
        self._by_length: dict[int, list[_Path]] = {}
        for path in sorted(paths.values(), key=lambda one: len(one.names)):
            if not path.has_rest:
                self._by_length.setdefault(path.length, []).append(path)
        self._with_rest = [path for path in paths.values() if path.has_rest]
        #: So many names may be told apart; slashes behind them stand in the last one.
        self._slashes_max = max((path.length for path in paths.values()), default=0)

    def find(self, method: str, path: str) -> Found:
        """The call of a request.

        Args:
            method: in capitals.
            path: as it came, without a query; its percent-encoding is sound, but where the call does not read it.

        Raises:
            CallError: there is no such path or method.
            Overloaded: the list is not whole, and this is none of it.
        """
        plain = self._plain.get(path)
        if plain is not None and (route := plain.methods.get(method)) is not None:
            return Found(route, NO_PARTS)
        parts = path.split("/", self._slashes_max)
        if "%" in path:
            parts = [*map(unquote, parts)]
        found = [one for one in self._by_length.get(len(parts), ()) if one.fits(parts)]
        found += (one for one in self._with_rest if len(parts) >= one.length and one.fits(parts))
        for one in found:
            route = one.methods.get(method) or one.methods.get(_ANY)
            if route is not None:
                return Found(route, {name: parts[at] for at, name in one.names})
        if not self._is_whole:
            raise Overloaded("the daemon is starting; come back")
        if found:
            allowed = sorted({name for one in found for name in one.methods})
            reason = "this path has no such method; the header Allow lists them"
            raise CallError(405, reason, {"Allow": ", ".join(allowed)})
        raise CallError(404, "no such path; GET /openapi.json lists them")
