"""One connection to a Pulsar broker, over which a reader asks and is delivered to.

Law: no call waits longer than its timeout for a broker, whether that is silent or sends other things. One thread makes all
calls, because a TLS connection must not be read and written by two. Pings are answered, and so is a broker that asks for the token again:
with what the file has now. Whatever a broker or a network does is `ConnectionLost` or `Refused`.
How: a blocking socket with a timeout.
`pulsar_reader` uses it, `rgd.wire.pulsar_commands` has the frames.
"""

import contextlib
import socket
import ssl
from typing import Final, NamedTuple, Self

import certifi

from rgd.adapters.exchange.credentials import check_pem, read_token
from rgd.adapters.exchange.deadline import Deadline
from rgd.adapters.exchange.pulsar_client import PulsarSettings
from rgd.ports.exchange import ExchangeDown
from rgd.wire import pulsar_commands as wire
from rgd.wire.api_pb2 import (
    AuthData,
    BaseCommand,
    CommandAuthResponse,
    CommandConnect,
    CommandPong,
    FeatureFlags,
)
from rgd.wire.errors import WireError
from rgd.wire.pulsar_commands import Frame, FrameBuffer, framed

#: A command costs about so much beside the entry behind it, in bytes.
COMMAND_BYTES: Final = 512


class ConnectionLost(Exception):
    """There is no connection, or none any more."""


class Refused(Exception):
    """The broker refused; `fault` is pulsar-client's name for the reason.

    Args:
        fault: such as `AuthorizationError`.
        reason: the broker's own words.
    """

    def __init__(self, fault: str, reason: str) -> None:
        self.fault = fault
        self.reason = reason
        super().__init__(f"{fault} ({reason})" if reason else fault)

    @classmethod
    def by(cls, error: int, reason: bytes) -> Self:
        """The error for a broker's answer."""
        name = wire.SERVER_ERRORS.get(error, wire.UNKNOWN_ERROR)
        return cls(name, reason[:200].decode(errors="replace"))


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int
    is_tls: bool

    @property
    def authority(self) -> str:
        """`host:port`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PulsarConnection:
    """A connection on which the broker has accepted us.

    Args:
        address: of the broker, or of a proxy.
        settings: how to reach it.
        broker: `host:port` of the broker, if the address is that of a proxy; else "".

    Raises:
        ConnectionLost: it cannot be reached.
        Refused: it does not accept us.
        ExchangeDown: the token or a certificate cannot be read.
    """

    def __init__(self, address: Address, settings: PulsarSettings, broker: str = "") -> None:
        self.address = address
        self._settings = settings
        self._timeout_s = float(settings.open_timeout_s)
        self._buffer = FrameBuffer()
        #: What came while an answer was waited for.
        self.early: list[Frame] = []
        self._early_bytes = 0
        #: Bytes that came so far.
        self.received_bytes = 0
        self._socket = _connected(address, settings)
        try:
            self._introduce(broker)
        except BaseException:
            self.close()
            raise

    def send(self, command: BaseCommand) -> None:
        """Send a command.

        Raises:
            ConnectionLost: it cannot be sent.
        """
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(framed(command))
        except (OSError, ValueError) as exc:
            raise ConnectionLost(str(exc) or type(exc).__name__) from exc

    def receive(self, timeout_s: float) -> list[Frame]:
        """Wait for commands; empty after the timeout, and where only pings came.

        Raises:
            ConnectionLost: the broker closed the connection, or does not speak Pulsar's protocol.
        """
        try:
            self._socket.settimeout(timeout_s)
            data = self._socket.recv(self._settings.receive_bytes_max)
        except TimeoutError:
            return []
        except (OSError, ValueError) as exc:
            raise ConnectionLost(str(exc) or type(exc).__name__) from exc
        if not data:
            raise ConnectionLost("the broker closed the connection")
        self.received_bytes += len(data)
        try:
            return [frame for frame in self._buffer.feed(data) if not self._is_answered(frame)]
        except WireError as exc:
            raise ConnectionLost(f"not Pulsar's protocol: {exc}") from exc

    def answer(self, kind: int) -> BaseCommand:
        """Wait for a command of this type; messages that come before or with it wait in `early`.

        Raises:
            Refused: the broker answered with an error, or not within the timeout ("Timeout").
            ConnectionLost: as `receive`; or too much came before the answer.
        """
        found = None
        deadline = Deadline(self._timeout_s)
        # By the time and not by a number of reads, because a read over TLS returns a record of 16 KiB at most.
        while (rest_s := deadline.rest_s) > 0:
            for frame in self.receive(rest_s):
                command = frame.command
                if command.type == kind and found is None:
                    found = command
                elif command.type == wire.ERROR:
                    raise Refused.by(command.error.error, command.error.message)
                else:
                    self._keep(frame)
            if found is not None:
                return found
        raise Refused("Timeout", "")

    def _keep(self, frame: Frame) -> None:
        self.early.append(frame)
        self._early_bytes += COMMAND_BYTES + len(frame.entry or b"")
        if self._early_bytes > self._settings.early_bytes_max:
            raise ConnectionLost("the broker sends too much before it answers")

    def close(self) -> None:
        """Close it. Idempotent; never fails."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _introduce(self, broker: str) -> None:
        method, secret = _authentication(self._settings)
        connect = CommandConnect(
            client_version=wire.CLIENT_VERSION,
            protocol_version=wire.PROTOCOL_VERSION,
            feature_flags=FeatureFlags(supports_auth_refresh=True),
            auth_method_name=method,
            auth_data=secret,
            proxy_to_broker_url=broker or None,
        )
        self.send(BaseCommand(type=wire.CONNECT, connect=connect))
        self.answer(wire.CONNECTED)

    def _is_answered(self, frame: Frame) -> bool:
        """Answer what needs nobody else's answer."""
        kind = frame.command.type
        if kind == wire.PING:
            self.send(BaseCommand(type=wire.PONG, pong=CommandPong()))
        elif kind == wire.AUTH_CHALLENGE:
            self._authenticate_again()
        else:
            return False
        return True

    def _authenticate_again(self) -> None:
        try:
            method, secret = _authentication(self._settings)
        except ExchangeDown as exc:
            raise ConnectionLost(str(exc)) from exc
        response = CommandAuthResponse(
            client_version=wire.CLIENT_VERSION,
            protocol_version=wire.PROTOCOL_VERSION,
            response=AuthData(auth_method_name=method, auth_data=secret),
        )
        self.send(BaseCommand(type=wire.AUTH_RESPONSE, authResponse=response))


def _authentication(settings: PulsarSettings) -> tuple[str | None, bytes | None]:
    """Pulsar's name of the method, and what it sends; None without authentication."""
    if settings.token_file is not None:
        return "token", read_token(settings.token_file, "exchange.token_file").encode()
    return (None, None) if settings.tls_cert is None else ("tls", b"")


def _connected(address: Address, settings: PulsarSettings) -> socket.socket:
    trust = _trust(settings) if address.is_tls else None
    timeout_s = float(settings.open_timeout_s)
    try:
        plain = socket.create_connection((address.host, address.port), timeout_s)
    except (OSError, ValueError) as exc:  # ValueError: an invalid host name
        raise ConnectionLost(f"{address.authority}: {exc}") from exc
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if trust is None:
            return plain
        return trust.wrap_socket(plain, server_hostname=address.host)
    except (OSError, ValueError) as exc:
        plain.close()
        raise ConnectionLost(f"{address.authority}: {exc}") from exc


def _trust(settings: PulsarSettings) -> ssl.SSLContext:
    """The same trust and certificate as pulsar-client's."""
    cafile = check_pem(settings.tls_trust_certs, "exchange.tls_ca") or certifi.where()
    cert = check_pem(settings.tls_cert, "exchange.tls_cert")
    key = check_pem(settings.tls_key, "exchange.tls_key")
    try:
        trust = ssl.create_default_context(cafile=cafile)
        if cert is not None:
            trust.load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as exc:
        raise ExchangeDown(
            f"{cafile}, {cert}: {exc}; check exchange.tls_ca, tls_cert and tls_key"
        ) from exc
    trust.check_hostname = settings.tls_validate_hostname
    return trust
