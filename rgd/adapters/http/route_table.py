"""Which call a request is for: those of `routes`, found by method and path.

Laws: names between slashes are compared and given decoded, so a name may hold a slash that was written `%2F`. Where
two paths fit, the one with fewer variable parts counts, and of those the first. HEAD goes wherever GET goes.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

from rgd.adapters.http.endpoint import Endpoint
from rgd.adapters.http.errors import NoSuchMethod, NoSuchPath

#: How the last part of a path is written that may hold slashes.
_REST: Final = ":path}"
#: The method of a call that takes every method.
_ANY: Final = "*"

NO_PARTS: Final[Mapping[str, str]] = {}


class Found(NamedTuple):
    """A call and the variable parts of its path."""

    endpoint: Endpoint
    parts: Mapping[str, str]


class _Path:
    """One path, and its calls by method."""

    def __init__(self, path: str) -> None:
        self.methods: dict[str, Endpoint] = {}
        parts = path.split("/")
        self.has_rest = path.endswith(_REST)
        self.length = len(parts)
        self._fixed = [(at, part) for at, part in enumerate(parts) if not part.startswith("{")]
        self.names = [(at, part.strip("{}")) for at, part in enumerate(parts) if part[:1] == "{"]
        if self.has_rest:
            self.names.pop()

    def add(self, endpoint: Endpoint) -> None:
        self.methods[endpoint.method] = endpoint
        if endpoint.method == "GET":
            self.methods["HEAD"] = endpoint

    def fits(self, parts: list[str]) -> bool:
        return all(parts[at] == part for at, part in self._fixed) and all(
            parts[at] for at, _ in self.names
        )


class RouteTable:
    """The calls of a list."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        paths: dict[str, _Path] = {}
        for endpoint in endpoints:
            paths.setdefault(endpoint.path, _Path(endpoint.path)).add(endpoint)
        self._plain = {path: one for path, one in paths.items() if "{" not in path}
        self._by_length: dict[int, list[_Path]] = {}
        for path in sorted(paths.values(), key=lambda one: len(one.names)):
            if not path.has_rest:
                self._by_length.setdefault(path.length, []).append(path)
        self._with_rest = [path for path in paths.values() if path.has_rest]

    def find(self, method: str, path: str) -> Found:
        """The call of a request.

        Args:
            method: in capitals.
            path: as it came, without a query; its percent-encoding is sound.

        Raises:
            NoSuchPath, NoSuchMethod
        """
        plain = self._plain.get(path)
        if plain is not None and (endpoint := plain.methods.get(method)) is not None:
            return Found(endpoint, NO_PARTS)
        parts = path.split("/")
        if "%" in path:
            parts = [*map(unquote, parts)]
        found = [one for one in self._by_length.get(len(parts), ()) if one.fits(parts)]
        found += (one for one in self._with_rest if len(parts) >= one.length and one.fits(parts))
        for one in found:
            endpoint = one.methods.get(method) or one.methods.get(_ANY)
            if endpoint is not None:
                return Found(endpoint, {name: parts[at] for at, name in one.names})
        if found:
            raise NoSuchMethod({name for one in found for name in one.methods})
        raise NoSuchPath
