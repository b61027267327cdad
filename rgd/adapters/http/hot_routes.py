"""Which calls the fast lane answers: those of `routes` that are hot, found by method and plain path.

Law: what is found here is what aiohttp's router would find. A path with anything but plain characters is
not looked for: it may be written in two ways, and aiohttp knows them.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from rgd.adapters.http.endpoint import Endpoint

_PLAIN: Final = re.compile(r"/[A-Za-z0-9._~/-]*")
_PART: Final = re.compile(r"\\\{(\w+)(:path)?\\\}")
_NO_PARTS: Final[Mapping[str, str]] = MappingProxyType({})

#: Most characters of a method; the longest of HTTP's registry has 17.
_METHOD_CHARS_MAX: Final = 17

#: Where every hot call is.
_BELOW: Final = b"/v1/"


class Found(NamedTuple):
    """A call and the variable parts of its path."""

    endpoint: Endpoint
    parts: Mapping[str, str]


class HotRoutes:
    """The hot calls of a list."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._fixed: dict[tuple[str, str], Found] = {}
        self._varied: list[tuple[re.Pattern[str], frozenset[str], Endpoint]] = []
        for endpoint in endpoints:
            if not endpoint.is_hot:
                continue
            assert endpoint.path.startswith(_BELOW.decode()), "hot calls are below one path"
            methods = ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,)
            if "{" in endpoint.path:
                pattern = re.compile(_pattern(endpoint.path))
                self._varied.append((pattern, frozenset(methods), endpoint))
            else:
                self._fixed |= {(one, endpoint.path): Found(endpoint, _NO_PARTS) for one in methods}

    def find(self, method: str, path: str) -> Found | None:
        """The hot call of a request; None where there is none, or it is not plain to see.

        Args:
            method: in capitals.
            path: as it came, without a query.
        """
        found = self._fixed.get((method, path)) or self._fixed.get(("*", path))
        if found is not None or not _PLAIN.fullmatch(path):
            return found
        for pattern, methods, endpoint in self._varied:
            matched = pattern.fullmatch(path)
            if matched is not None and (method in methods or "*" in methods):
                return Found(endpoint, matched.groupdict())
        return None


def may_become_hot(begun: bytes) -> bool:
    """Whether the first bytes of a request may be those of a hot call."""
    method, space, target = begun[: _METHOD_CHARS_MAX + len(_BELOW) + 1].partition(b" ")
    if not method.isalpha() or not method.isupper() or len(method) > _METHOD_CHARS_MAX:
        return False
    return not space or _BELOW.startswith(target[: len(_BELOW)])


def _pattern(path: str) -> str:
    return _PART.sub(lambda part: f"(?P<{part[1]}>{'.*' if part[2] else '[^/]+'})", re.escape(path))
