"""How a client is set up: where the daemon is, how long to wait for it, and what to do without it.

Every queue and table of the client has its limit here, by name.
"""

import math
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Final

from rgd.client.errors import BadSetting

#: Begins an address that is a unix socket's path: `unix:///run/rgd.sock`.
UNIX: Final = "unix://"
_SCHEMES: Final = ("http://", "https://", UNIX)


class WhenAway(StrEnum):
    """What is answered while no daemon answers."""

    #: Everything is granted: an outage of rgd stops nobody, and nothing is limited.
    OPEN = "open"
    #: Everything is refused: nothing passes unlimited.
    CLOSED = "closed"


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """Settings of one client.

    Raises:
        BadSetting: a setting is out of range, or they contradict one another.
    """

    when_away: WhenAway | str
    """`open` or `closed`. It has no default: only you know which outage is the worse one."""

    url: str = "http://127.0.0.1:7700"
    """Where the daemon listens: `http(s)://HOST:PORT`, or `unix:///PATH` of its socket."""

    token: str | None = field(default=None, repr=False)
    """A bearer token of scope `query`; or `token_file`."""

    token_file: Path | str | None = None
    """A file that holds one; read again when the daemon refuses the token."""

    tls_ca: Path | str | None = None
    """Certificates (PEM) to trust instead of the system's."""

    tls_cert: Path | str | None = None
    """The client's own certificate (PEM), with `tls_key`."""

    tls_key: Path | str | None = None
    """Its key (PEM)."""

    timeout_s: float = 0.25
    """Longest wait for an answer; then `when_away` decides."""

    close_timeout_s: float = 1.0
    """Longest time that closing takes: leases and unused grants are given back in it."""

    retry_first_s: float = 0.05
    """First pause before a daemon that is away is asked again; pauses double."""

    retry_max_s: float = 2.0
    """Longest such pause."""

    batch_max: int = 1000
    """Questions of one call. The daemon takes `http.batch_max` (1,000); where it takes fewer, calls shrink."""

    calls_max: int = 4
    """Calls in progress; each has a connection."""

    waiting_max: int = 10_000
    """Questions that wait for an answer. One more is answered by `when_away`."""

    names_max: int = 10_000
    """Names with unsettled grants, and names with leases. Beyond it, grants expire unsettled and new names are asked without a lease."""

    lease_ttl_s: float = 2.0
    """How long a lease is to live, 0.1 to 60. A crashed client wastes at most its leases."""

    def __post_init__(self) -> None:
        if self.when_away not in set(WhenAway):
            raise BadSetting(f"when_away: expected open or closed, got {self.when_away!r:.60}")
        if not self.url.startswith(_SCHEMES):
            raise BadSetting(
                f"url: expected http(s)://HOST:PORT or unix:///PATH, got {self.url!r:.60}"
            )
        if self.token is not None and self.token_file is not None:
            raise BadSetting("token: expected either token or token_file, got both")
        token = "token" if self.token is None else self.token
        # No header can say another one, and every call would fail as if the daemon were away.
        if not token.isascii() or token.split() != [token] or not token.isprintable():
            raise BadSetting("token: expected one token and nothing else")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise BadSetting("tls_cert: expected tls_cert and tls_key together, got one")
        for one in fields(self):
            value = getattr(self, one.name)
            is_limit = one.name.endswith(("_max", "_s"))
            if is_limit and not (value > 0 and math.isfinite(value)):
                raise BadSetting(f"{one.name}: expected a number above 0, got {value!r:.60}")
        if not 0.1 <= self.lease_ttl_s <= 60:  # the daemon gives no other leases
            raise BadSetting(f"lease_ttl_s: expected 0.1 to 60, got {self.lease_ttl_s!r:.60}")
        if self.retry_first_s > self.retry_max_s:
            raise BadSetting("retry_first_s: expected at most retry_max_s")
