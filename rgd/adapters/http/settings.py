"""The settings of the HTTP server.

Law: nothing listens beyond loopback without tokens unless somebody said
`insecure`. Reading the settings and the tokens file, and their ranges, are `rgd.config`'s business.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rgd.adapters.http.tokens import Tokens
from rgd.errors import ConfigError, Fault
from rgd.ports.door import Ungoverned, is_loopback

#: What the faults name as their source: whoever read the settings knows the file.
SOURCE: Final = "settings"

#: Calls of the scope `read` in work at once; the next one is answered 503.
READS_MAX: Final = 136


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The door's settings; the names are those of docs/configuration.md."""

    host: str = "127.0.0.1"
    #: 0 takes a free one.
    port: int = 7700
    #: Where probes and scrapes alone are answered, without TLS; None: nowhere.
    probe_address: tuple[str, int] | None = None
    #: A second way in, for this user only (mode 0600).
    unix_socket: Path | None = None
    #: Most items of one array; more is 413.
    batch_max: int = 1000
    #: Largest body; more is 413.
    body_max_bytes: int = 256 << 10
    ungoverned: Ungoverned = Ungoverned.ALLOW
    #: Decide and count, and refuse nothing.
    shadow: bool = False
    #: Empty: no call needs a token.
    tokens: Tokens = field(default_factory=Tokens)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Clients must show a certificate of this authority (PEM).
    tls_client_ca: Path | None = None
    #: Listen beyond loopback without tokens all the same.
    insecure: bool = False
    #: Most connections at once; the probes' reserve comes on top.
    connections_max: int = 4096
    #: Of those, most of one address; callers of this machine (127.0.0.1, ::1, the unix socket) are
    #: bounded by `connections_max` alone.
    connections_per_address_max: int = 1024
    #: How long a connection may stay idle: before its first request, and between two.
    idle_timeout_s: float = 75.0
    #: How long a request head may take from its first byte, its body after it, and a TLS handshake.
    request_timeout_s: float = 10.0
    #: How long an answer may take to be read.
    answer_timeout_s: float = 30.0
    #: Most bytes of answers that wait to be read, of all connections together.
    unread_max_bytes: int = 64 << 20
    #: Most bytes of bodies in work, of all connections together; beyond: 503.
    bodies_max_bytes: int = 64 << 20
    #: Most calls of the scope `read` in work at once; no setting of the operator.
    reads_max: int = READS_MAX
    #: How long `close` waits for requests in flight.
    close_timeout_s: float = 5.0


def check(settings: HttpSettings) -> None:
    """Refuse to open the door to strangers; what else may be wrong with settings `rgd.config` has refused.

    Raises:
        ConfigError: the address is reachable from other machines, and nobody needs a token.
    """
    if settings.tokens or settings.insecure:
        return
    hosts = {"http.listen": settings.host}
    if settings.probe_address is not None:
        hosts["http.probe_listen"] = settings.probe_address[0]
    for key, host in hosts.items():
        if not is_loopback(host):
            expected = (
                f"{host or 'every address'} is reachable from other machines and no tokens are set: "
                "listen on 127.0.0.1, or name a file of tokens in http.tokens_file, or say --insecure"
            )
            raise ConfigError(Fault(SOURCE, key, expected))
