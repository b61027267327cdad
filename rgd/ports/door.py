"""The words of the HTTP door that both sides of it use: who writes it down, and who keeps it.

Law: whoever reads what a person said of the door (`rgd.config`) and whoever opens it
(`rgd.adapters.http`) mean the same by a scope, by a token's digest and by "this machine alone".

How files are read and how requests are answered stands there, not here.
"""

import hashlib
import ipaddress
from enum import StrEnum
from typing import Final

#: Most tokens: each request is compared with all of them. More are a fault of the configuration.
TOKENS_MAX: Final = 256


class Scope(StrEnum):
    """What a caller may do."""

    #: Ask: acquire, check.
    QUERY = "query"
    #: Look: groups, brokers, metrics.
    READ = "read"
    #: Change policies, and all else.
    ADMIN = "admin"


class Ungoverned(StrEnum):
    """What becomes of a request for a name that no limit applies to."""

    ALLOW = "allow"
    DENY = "deny"


def digest_of(token: str) -> bytes:
    """The SHA-256 digest under which a token is kept; of any text, whatever bytes a caller sent."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`; a name other than localhost may lead anywhere."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
