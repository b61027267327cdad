"""Creates a Pulsar client from settings, with its token and certificates, and closes one that failed.

Law: every connection of rgd to a Pulsar is created here, so all of them use the settings.
Files are read each time. `rgd.adapters.exchange.pulsar_session` uses the connection.
"""

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar

from rgd.adapters.exchange.credentials import check_pem, read_token
from rgd.adapters.exchange.pulsar_errors import invalid_url
from rgd.adapters.exchange.pulsar_log import client_log
from rgd.adapters.exchange.seal import SealSettings


@dataclass(frozen=True, slots=True)
class PulsarSettings:
    """How to reach a Pulsar; the defaults suit a broker in the same network."""

    #: A file with a token; read for every new client.
    token_file: Path | None = None
    #: The authorities that sign the broker's certificate; None: those of Python's certifi.
    tls_trust_certs: Path | None = None
    #: The daemon's own certificate and key, where the broker requires one.
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_validate_hostname: bool = True
    #: The advertised listener whose addresses are used; None: the brokers' usual ones.
    listener_name: str | None = None
    #: Longest time of a step of joining, in whole seconds (the client's unit). The
    #: client also retries a lost broker at this interval, so it bounds the delay of its return.
    open_timeout_s: int = 5
    #: Longest silence of a broker that a reader has asked for a sign of life.
    sign_timeout_s: float = 3.0
    #: Longest time of a publish.
    send_timeout_ms: int = 2000
    #: Whether the client compresses messages (LZ4), as stock brokers do. rgd's own are compressed already.
    is_compressed: bool = False
    #: Most lookups of a reader that one answer may lead to, as in Pulsar's own clients.
    redirects_max: int = 20
    #: Pause of a reader before the broker is asked again, where it says that it is not ready.
    retry_pause_s: float = 0.1
    #: Most bytes that a reader receives at once.
    receive_bytes_max: int = 1 << 18
    #: Most that waits while a reader waits for an answer, in bytes; more than the broker's dispatcher reads at a
    #: time (5 MiB).
    early_bytes_max: int = 32 << 20
    #: Set where messages carry a keyed hash: on the embedded broker.
    seal: SealSettings | None = None

    @property
    def credential_files(self) -> tuple[Path, ...]:
        """The files that are read for each client."""
        files = (self.token_file, self.tls_trust_certs, self.tls_cert, self.tls_key)
        return tuple(path for path in files if path is not None)


def connect(url: str, settings: PulsarSettings) -> Any:
    """A client; nothing is connected yet. May block like any file.

    Raises:
        ExchangeDown: the token or a certificate cannot be read.
        ConfigError: the URL is invalid.
    """
    trust = check_pem(settings.tls_trust_certs, "exchange.tls_ca")
    cert = check_pem(settings.tls_cert, "exchange.tls_cert")
    key = check_pem(settings.tls_key, "exchange.tls_key")
    authentication = None
    if settings.token_file is not None:
        # Text and not a function, because the client would call it in its own threads, and a thread that ends
        # together with the interpreter aborts the process. An expired token costs a session, and
        # the next one reads the file again.
        token = read_token(settings.token_file, "exchange.token_file")
        authentication = pulsar.AuthenticationToken(token)
    elif cert and key:
        authentication = pulsar.AuthenticationTLS(cert, key)
    try:
        return pulsar.Client(
            url,
            authentication=authentication,
            operation_timeout_seconds=settings.open_timeout_s,
            connection_timeout_ms=settings.open_timeout_s * 1000,
            tls_trust_certs_file_path=trust,
            tls_certificate_file_path=cert,
            tls_private_key_file_path=key,
            tls_validate_hostname=settings.tls_validate_hostname,
            listener_name=settings.listener_name,
            stats_interval_in_seconds=0,
            logger=client_log(),
        )
    except ValueError as exc:
        raise invalid_url(url, str(exc)) from exc


def close_after(client: Any, rest_s: float) -> None:
    """Close an unused client; blocks."""
    threading.Event().wait(rest_s)
    with contextlib.suppress(pulsar.PulsarException):
        client.close()
