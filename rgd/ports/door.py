"""Definitions that the configuration and the HTTP server share.

Law: `rgd.config`, which reads the settings, and `rgd.adapters.http`, which serves requests, use the
same scopes, the same digest of a token and the same definition of loopback.
"""

import hashlib
import ipaddress
from contextvars import ContextVar
from enum import StrEnum
from typing import Final

#: Most tokens, because each request is compared with all of them. More are a configuration error.
TOKENS_MAX: Final = 256

#: Whose call is being answered: the name of its token; empty: there are no tokens, or nobody called.
CALLER: Final[ContextVar[str]] = ContextVar("caller", default="")


class Scope(StrEnum):
    """What a caller may do."""

    #: Ask: acquire, check.
    QUERY = "query"
    #: Look: groups, brokers, metrics.
    READ = "read"
    #: Change policies, and all else.
    ADMIN = "admin"


class Ungoverned(StrEnum):
    """The answer to a request for a name without any limit."""

    ALLOW = "allow"
    DENY = "deny"


def digest_of(token: str) -> bytes:
    """The SHA-256 digest under which a token is stored; accepts any text."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`; a name other than localhost counts as remote."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
