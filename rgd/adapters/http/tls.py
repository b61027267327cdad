"""TLS: the certificate, who must show one of theirs, and the handshake before a connection begins.

Laws:
- A client is counted before its handshake, which has `request_timeout_s`.
- New handshakes use the context in force (`Certificates.load` replaces it).
- Connections that are open keep theirs, unless the authority of clients' certificates has changed: then those of
  another authority end, after the request that they have under way. A client whose certificate the
  new authority accepts connects again.
"""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, cast

from typing_extensions import override

from rgd.adapters.http.connection import Connection
from rgd.adapters.http.connection_limits import Admission
from rgd.adapters.http.guard import Bounds, address_of
from rgd.adapters.http.settings import SOURCE
from rgd.config.plain_files import open_plain_file
from rgd.errors import ConfigError, Fault

_PROTOCOLS: Final = ["http/1.1"]


class Certificates:
    """The certificate in force, and the authority that clients' certificates must come from.

    Args:
        cert, key: PEM files.
        client_ca: a PEM file; None: clients need no certificate.

    Raises:
        ConfigError: a file cannot be used.
    """

    def __init__(self, cert: Path, key: Path, client_ca: Path | None = None) -> None:
        self._cert, self._key, self._client_ca = cert, key, client_ca
        #: The content of the authority's file.
        self.authority: bytes | None = None
        self.load()

    def load(self) -> None:
        """Read the files again; handshakes from now on use them.

        Raises:
            ConfigError: a file cannot be used; the old ones stay in force.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(_PROTOCOLS)
        try:
            # A FIFO would be waited for without end, and tokens with it.
            with open_plain_file(self._cert), open_plain_file(self._key):
                pass
            # With a password that is none, so that an encrypted key is an error and no question on a terminal.
            context.load_cert_chain(self._cert, self._key, password="")
        except OSError as exc:  # ssl.SSLError is one too
            expected = f"expected a PEM certificate and its key, got {exc}"
            raise ConfigError(Fault(SOURCE, "http.tls_cert", expected)) from exc
        authority = None
        if self._client_ca is not None:
            try:
                with open_plain_file(self._client_ca):
                    pass
                # Read first: if it changes in between, it is loaded again soon, and then it differs.
                authority = self._client_ca.read_bytes()
                context.load_verify_locations(self._client_ca)
            except OSError as exc:
                expected = f"expected PEM certificates of an authority, got {exc}"
                raise ConfigError(Fault(SOURCE, "http.tls_client_ca", expected)) from exc
            context.verify_mode = ssl.CERT_REQUIRED
        # In the other order than a handshake reads them, which may be at the same time: none
        # uses an older context than the authority that its connection is said to come from.
        self.context = context
        self.authority = authority


class Greeting:
    """Counts clients that come over TLS, and begins with them after the handshake.

    Args:
        accept: makes what begins.
        bounds: of all connections.
        certificates: whose context each handshake uses.
    """

    def __init__(
        self, accept: Callable[[], Connection], bounds: Bounds, certificates: Certificates
    ) -> None:
        self.accept = accept
        self.bounds = bounds
        self.certificates = certificates
        self.loop = asyncio.get_running_loop()
        #: Handshakes under way, and what ends connections.
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let work go on until it ends or `close` is called."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """End the handshakes under way."""
        for task in self._tasks:
            task.cancel()


class TlsGreeter(asyncio.Protocol):
    """One client that comes over TLS."""

    def __init__(self, greeting: Greeting) -> None:
        self._greeting = greeting
        self._limits = greeting.bounds.connections
        #: What arrived before the handshake began.
        self._early = bytearray()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast("asyncio.Transport", transport)
        admission = self._limits.arrive(address_of(accepted), accepted.abort)
        if admission is None:
            accepted.abort()
            return
        accepted.pause_reading()
        self._greeting.start(self._greet(accepted, admission))

    @override
    def data_received(self, data: bytes) -> None:
        self._early += data

    async def _greet(self, transport: asyncio.Transport, admission: Admission) -> None:
        connection = self._greeting.accept()
        is_taken = False
        try:
            # uvloop, and asyncio of Python 3.11.2, begin to read after `connection_made`, whatever was said there; the
            # latter takes itself for paused meanwhile.
            transport.resume_reading()
            transport.pause_reading()
            certificates = self._greeting.certificates
            admission.authority = certificates.authority
            handshake = asyncio.get_running_loop().create_task(
                asyncio.get_running_loop().start_tls(
                    transport,
                    connection,
                    certificates.context,
                    server_side=True,
                    ssl_handshake_timeout=self._greeting.bounds.request_timeout_s,
                )
            )
            if self._early:
                await self._hand_on(transport)
            secured = await handshake
            is_current = admission.authority == certificates.authority
            if secured is not None and is_current:
                is_taken = connection.take_over(secured, admission)
        except OSError:
            # Whoever breaks a handshake off, or speaks another protocol, hears nothing from us.
            pass
        finally:
            if not is_taken:
                transport.abort()
                self._limits.leave(admission)

    async def _hand_on(self, transport: asyncio.Transport) -> None:
        """Give the handshake what arrived before it began."""
        # In the first turn it takes the transport over, in the second it may be given bytes; what
        # arrives later is read at that turn's end.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        protocol = cast("asyncio.BufferedProtocol", transport.get_protocol())
        left = memoryview(bytes(self._early))
        while left and not transport.is_closing():
            buffer = memoryview(protocol.get_buffer(len(left)))
            count = min(len(buffer), len(left))
            buffer[:count] = left[:count]
            protocol.buffer_updated(count)
            left = left[count:]
