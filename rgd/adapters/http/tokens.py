"""Who may do what: bearer tokens and their scopes (RFC 6750).

Law: a token is kept as its SHA-256 digest only, compared in constant time with
every known one, and never shown: not in a log, not in an error, not in a repr.

`query` may ask, `read` may look, `admin` may do everything. Reading the file of
tokens is `rgd.config`'s business; asking for a scope is `gate`'s.
"""

import hmac
from collections.abc import Mapping
from typing import Final

from typing_extensions import override

from rgd.errors import ConfigError, Fault
from rgd.ports.door import TOKENS_MAX, Scope, digest_of

_SOURCE: Final = "tokens"

EVERYTHING: Final = frozenset(Scope)

_BEARER: Final = "bearer"


class Tokens:
    """The tokens in force, by digest; none at all means that no call needs one."""

    __slots__ = ("_known", "_names")

    def __init__(
        self,
        scopes_by_digest: Mapping[bytes, frozenset[Scope]] | None = None,
        names: Mapping[bytes, str] | None = None,
    ) -> None:
        """Take SHA-256 digests.

        Args:
            scopes_by_digest: what each token may be used for.
            names: of their owners, by the same digests.

        Raises:
            ConfigError: there are more than `TOKENS_MAX`.
        """
        known = scopes_by_digest or {}
        self._names = names or {}
        if len(known) > TOKENS_MAX:
            expected = f"expected at most {TOKENS_MAX} tokens, got {len(known)}"
            raise ConfigError(Fault(_SOURCE, "", expected))
        self._known = tuple(
            (digest, EVERYTHING if Scope.ADMIN in scopes else scopes)
            for digest, scopes in known.items()
        )

    def scopes_of(self, token: str) -> frozenset[Scope] | None:
        """What a token may be used for; None when it is not known."""
        asked = digest_of(token)
        found: frozenset[Scope] | None = None
        for digest, scopes in self._known:
            # No early end: the time taken must not tell which token came close.
            if hmac.compare_digest(digest, asked):
                found = scopes
        return found

    def name_of(self, token: str) -> str:
        """Its owner; empty where it has no name."""
        return self._names.get(digest_of(token), "")

    def __len__(self) -> int:
        return len(self._known)

    @override
    def __repr__(self) -> str:
        return f"<Tokens: {len(self)}>"


def bearer_of(authorization: str) -> str | None:
    """The bearer token of an `Authorization` header, in whichever way it is spaced; None: it has none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == _BEARER else None
