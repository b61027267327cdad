"""The door's settings, from those of the daemon."""

from typing import Final

import structlog

from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tokens import Tokens
from rgd.app.credentials import tokens_of
from rgd.app.open_files import connections_room, raise_open_files
from rgd.config.settings import Settings
from rgd.config.values import split_address

#: The part of `shutdown_timeout_ms` after which requests in flight are cut off.
DRAIN_PART: Final = 0.4

_log = structlog.get_logger("rgd")


def http_settings(settings: Settings, *, insecure: bool) -> HttpSettings:
    """The door's settings; where the process may open few files, with fewer connections."""
    http = settings.http
    room = connections_room(raise_open_files(), settings.exchange.shards)
    if room < http.connections_max:
        _log.warning("few open files: fewer connections than http.connections_max", most=room)
    tokens = Tokens() if http.tokens_file is None else tokens_of(http.tokens_file)
    host, port = http.address
    return HttpSettings(
        host=host,
        port=port,
        probe_address=None if http.probe_listen is None else split_address(http.probe_listen),
        unix_socket=http.unix_socket,
        batch_max=http.batch_max,
        body_max_bytes=http.body_max_bytes,
        connections_max=min(http.connections_max, room),
        connections_per_address_max=http.connections_per_address_max,
        idle_timeout_s=http.idle_timeout_ms / 1000,
        request_timeout_s=http.request_timeout_ms / 1000,
        answer_timeout_s=http.answer_timeout_ms / 1000,
        unread_max_bytes=http.unread_max_bytes,
        bodies_max_bytes=http.bodies_max_bytes,
        ungoverned=http.ungoverned,
        tokens=tokens,
        tls_cert=http.tls_cert,
        tls_key=http.tls_key,
        tls_client_ca=http.tls_client_ca,
        shadow=http.shadow,
        close_timeout_s=DRAIN_PART * settings.shutdown_timeout_ms / 1000,
        insecure=insecure,
    )


def address_of(settings: Settings, port: int) -> str:
    """The URL at which it listens."""
    scheme = "https" if settings.http.tls_cert else "http"
    host = settings.http.address[0]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
