"""Who may do what: bearer tokens and their scopes (RFC 6750).

Law: a token is kept as its SHA-256 digest only, compared in constant time with
every known one, and never shown: not in a log, not in an error, not in a repr.

`query` may ask, `read` may look, `admin` may do everything. Reading the file of
tokens is `rgd.config`'s business; asking for a scope is `server`'s.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from typing_extensions import override

from rgd.errors import ConfigError, Fault

#: Most tokens: each request compares all of them. More are a fault of the configuration.
TOKENS_MAX: Final = 256

_SOURCE: Final = "tokens"
#: RFC 6750's b64token: anything else cannot be sent as a bearer token.
_SENDABLE: Final = re.compile(r"[-A-Za-z0-9._~+/]+=*")


class Scope(StrEnum):
    """What a token may be used for."""

    QUERY = "query"
    READ = "read"
    ADMIN = "admin"


EVERYTHING: Final = frozenset(Scope)


class Tokens:
    """The tokens in force, by digest; none at all means that no call needs one."""

    __slots__ = ("_known",)

    def __init__(self, scopes_by_digest: Mapping[bytes, frozenset[Scope]] | None = None) -> None:
        """Take SHA-256 digests.

        Raises:
            ConfigError: there are more than `TOKENS_MAX`.
        """
        known = scopes_by_digest or {}
        if len(known) > TOKENS_MAX:
            expected = f"expected at most {TOKENS_MAX} tokens, got {len(known)}"
            raise ConfigError(Fault(_SOURCE, "", expected))
        self._known = tuple(
            (digest, EVERYTHING if Scope.ADMIN in scopes else scopes)
            for digest, scopes in known.items()
        )

    @classmethod
    def from_plain(cls, scopes_by_token: Mapping[str, Iterable[str]]) -> "Tokens":
        """Take tokens as they are sent, with the names of their scopes.

        Raises:
            ConfigError: carries every fault; tokens are named by their place.
        """
        faults: list[Fault] = []
        known: dict[bytes, frozenset[Scope]] = {}
        for place, (token, names) in enumerate(scopes_by_token.items(), start=1):
            scopes = frozenset(names)
            if not _SENDABLE.fullmatch(token):
                expected = "expected letters, digits or any of - . _ ~ + / with = at the end"
                faults.append(Fault(_SOURCE, f"token {place}", expected))
            elif not scopes or not scopes <= set(Scope):
                wrong = ", ".join(sorted(map(repr, scopes - set(Scope)))) or "nothing"
                expected = f"expected scopes among {', '.join(Scope)}, got {wrong}"
                faults.append(Fault(_SOURCE, f"token {place}", expected))
            else:
                known[digest_of(token)] = frozenset(map(Scope, scopes))
        if faults:
            raise ConfigError(*faults)
        return cls(known)

    def scopes_of(self, token: str) -> frozenset[Scope] | None:
        """What a token may be used for; None when it is not known."""
        asked = digest_of(token)
        found: frozenset[Scope] | None = None
        for digest, scopes in self._known:
            # No early end: the time taken must not tell which token came close.
            if hmac.compare_digest(digest, asked):
                found = scopes
        return found

    def __len__(self) -> int:
        return len(self._known)

    @override
    def __repr__(self) -> str:
        return f"<Tokens: {len(self)}>"


def digest_of(token: str) -> bytes:
    """The SHA-256 digest under which a token is kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
