"""Makes a Pulsar client out of settings, with its token and certificates, and closes one that failed.

Law: every connection of rgd to a Pulsar is made here, so none goes without what the settings say.
Files are read each time. What is done over the connection is `rgd.adapters.exchange.pulsar_session`.
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

    #: A file with a token; read again for every client that is made.
    token_file: Path | None = None
    #: The authorities that sign the broker's certificate; None: the ones that come with Python's certifi.
    tls_trust_certs: Path | None = None
    #: The daemon's own certificate and key, where the broker asks for one.
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_validate_hostname: bool = True
    #: The longest a step of joining may take, in whole seconds (the client has no finer unit). The
    #: client also looks for a lost broker in turns of this length, so it bounds how late it comes back.
    open_timeout_s: int = 5
    #: The longest a publish may take.
    send_timeout_ms: int = 2000
    #: Where messages carry a keyed hash: on the embedded broker.
    seal: SealSettings | None = None


def connect(url: str, settings: PulsarSettings) -> Any:
    """A client; nothing is connected yet. May block like any file.

    Raises:
        ExchangeDown: the token or a certificate cannot be read.
        ConfigError: the URL is none.
    """
    if not url.startswith(("pulsar://", "pulsar+ssl://")):
        raise invalid_url(url, "unknown scheme")
    trust = check_pem(settings.tls_trust_certs, "exchange.tls_ca")
    cert = check_pem(settings.tls_cert, "exchange.tls_cert")
    key = check_pem(settings.tls_key, "exchange.tls_key")
    authentication = None
    if settings.token_file is not None:
        # A text and not a function, which the client would call in threads of its own: one that ends
        # while the interpreter does aborts the process. A token that has run out costs a session, and
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
            stats_interval_in_seconds=0,
            logger=client_log(),
        )
    except ValueError as exc:
        raise invalid_url(url, str(exc)) from exc


def close_after(client: Any, rest_s: float) -> None:
    """Close a client that did not come to be used; blocks."""
    threading.Event().wait(rest_s)
    with contextlib.suppress(pulsar.PulsarException):
        client.close()
