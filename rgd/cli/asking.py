"""The common part of the client commands: the daemon's address, the token, the call.

Laws: a token is read from a file or from `RGD_TOKEN`, never from an option (others could read it in
the list of processes), and never printed. An unreachable daemon is exit code 1 with a remedy. A request
that the daemon calls malformed is a usage error, so it is 2.

The calls themselves are `rgd.adapters.http.client`'s.
"""

# ruff: noqa: PLC0415 -- the client is imported by what calls, so that --help stays fast

import json
import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from rgd.cli.options import taking
from rgd.errors import ConfigError, Fault, RgdError

if TYPE_CHECKING:
    from rgd.adapters.http.client import DaemonClient

SOURCE: Final = "command line"

#: `rgd.config` knows that these variables are no settings of the daemon.
URL_VARIABLE: Final = "RGD_URL"
TOKEN_VARIABLE: Final = "RGD_TOKEN"  # noqa: S105 -- a name, not a token
TOKEN_FILE_VARIABLE: Final = "RGD_TOKEN_FILE"  # noqa: S105 -- the same

DEFAULT_URL: Final = "http://127.0.0.1:7700"
SCHEMES: Final = ("http://", "https://", "unix:///")

#: Longest token file that is read, in bytes.
TOKEN_BYTES_MAX: Final = 64 << 10

Url = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar=URL_VARIABLE,
        help="Where the daemon listens: http(s)://HOST:PORT, or unix:///PATH of its socket.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar=TOKEN_FILE_VARIABLE,
        help=f"A file that holds a bearer token; without it {TOKEN_VARIABLE} is asked.",
    ),
]
TlsCa = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", envvar="RGD_TLS_CA", help="Certificates to trust, PEM, not the system's."
    ),
]
TlsCert = Annotated[
    Path | None,
    typer.Option(metavar="FILE", envvar="RGD_TLS_CERT", help="A certificate to show, PEM."),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(metavar="FILE", envvar="RGD_TLS_KEY", help="The key of `--tls-cert`, PEM."),
]
AsJson = Annotated[bool, typer.Option("--json", help="What the daemon answered, as JSON.")]

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Door:
    """The daemon's address, the token and the certificates: the options of every command that asks."""

    url: Url = DEFAULT_URL
    token_file: TokenFile = None
    tls_ca: TlsCa = None
    tls_cert: TlsCert = None
    tls_key: TlsKey = None

    def ask(
        self,
        calls: Callable[["DaemonClient"], Awaitable[_Answer]],
        trust: ssl.SSLContext | None = None,
    ) -> _Answer:
        """Open a client and make some calls.

        Args:
            calls: makes them.
            trust: whom to trust where the options name nobody.

        Raises:
            ConfigError: the address, the token file or the request is malformed.
            RgdError: no daemon answers, or it refused; the message has the remedy.
        """
        import asyncio

        if not self.url.startswith(SCHEMES):
            # Without a name and a password.
            given = self.url.rpartition("@")[2]
            expected = f"expected http://HOST:PORT, https://HOST:PORT or unix:///PATH, got {given}"
            raise ConfigError(Fault(SOURCE, "--url", expected))
        return asyncio.run(self._ask(calls, self._token(), self._tls() or trust))

    def show(
        self,
        calls: Callable[["DaemonClient"], Awaitable[_Answer]],
        printed: Callable[[_Answer], None],
        *,
        as_json: bool,
    ) -> None:
        """Make some calls, and print what comes of them: as JSON, or in words."""
        answer = self.ask(calls)
        if as_json:
            print(json.dumps(answer))
        else:
            printed(answer)

    async def _ask(
        self,
        calls: Callable[["DaemonClient"], Awaitable[_Answer]],
        token: str | None,
        tls: ssl.SSLContext | None,
    ) -> _Answer:
        from rgd.adapters.http.client import DaemonClient, DaemonRefused, DaemonUnreachable

        try:
            async with DaemonClient(self.url, token=token, tls=tls) as client:
                return await calls(client)
        except DaemonUnreachable as error:
            remedy = f"start one with `rgd serve`, or say where it is with --url or {URL_VARIABLE}"
            if isinstance(error.__cause__, ssl.SSLError | ssl.CertificateError):
                remedy = "give its authority with --tls-ca, your certificate with --tls-cert"
            raise RgdError(f"{error}; {remedy}") from error
        except DaemonRefused as error:
            if error.status == 400:
                raise ConfigError(Fault(SOURCE, "", error.reason)) from error
            if error.status in {401, 403}:
                remedy = f"give a token with --token-file or {TOKEN_VARIABLE}"
                raise RgdError(f"the daemon refused: {error.reason}; {remedy}") from error
            raise RgdError(f"the daemon refused: {error}") from error

    def _tls(self) -> ssl.SSLContext | None:
        """None: as the system trusts."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError(Fault(SOURCE, "--tls-cert", "expected --tls-cert and --tls-key"))
        if self.tls_ca is None and self.tls_cert is None:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_ca)
            if self.tls_cert is not None:
                # With a password that is none, so that an encrypted key is an error and no question.
                context.load_cert_chain(self.tls_cert, self.tls_key, password="")
        except OSError as error:  # ssl.SSLError is one too
            expected = f"expected readable PEM files, got {error}"
            raise ConfigError(Fault(SOURCE, "--tls-ca, --tls-cert, --tls-key", expected)) from error
        return context

    def _token(self) -> str | None:
        if self.token_file is None:
            return os.environ.get(TOKEN_VARIABLE, "").strip() or None
        try:
            with self.token_file.open(encoding="ascii") as file:
                token = file.read(TOKEN_BYTES_MAX).strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            expected = f"expected a readable file that holds a token: {why}"
            raise ConfigError(Fault(str(self.token_file), "", expected)) from error
        if not token or len(token.split()) > 1:
            expected = "expected one token and nothing else"
            raise ConfigError(Fault(str(self.token_file), "", expected))
        return token


#: Gives a command the options of `Door`; it gets the door as `door`.
asks = taking(Door, "door")
