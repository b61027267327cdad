"""The common part of the client commands: the daemon's address, the token, the call.

Laws: a token is read from a file or from `RGD_TOKEN`, never from an option (others could read it in
the list of processes), and never printed. An unreachable daemon is exit code 1 with a remedy. A request
that the daemon calls malformed is a usage error, so it is 2.

The calls themselves are `rgd.adapters.http.client`'s.
"""

# ruff: noqa: PLC0415 -- the client is imported by what calls, so that --help stays fast

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

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
AsJson = Annotated[bool, typer.Option("--json", help="What the daemon answered, as JSON.")]

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Door:
    """The daemon's address and the token."""

    url: str
    token_file: Path | None = None

    def ask(self, calls: Callable[["DaemonClient"], Awaitable[_Answer]]) -> _Answer:
        """Open a client and make some calls.

        Raises:
            ConfigError: the address, the token file or the request is malformed.
            RgdError: no daemon answers, or it refused; the message has the remedy.
        """
        import asyncio

        if not self.url.startswith(SCHEMES):
            expected = (
                f"expected http://HOST:PORT, https://HOST:PORT or unix:///PATH, got {self.url}"
            )
            raise ConfigError(Fault(SOURCE, "--url", expected))
        return asyncio.run(self._ask(calls, self._token()))

    async def _ask(
        self, calls: Callable[["DaemonClient"], Awaitable[_Answer]], token: str | None
    ) -> _Answer:
        from rgd.adapters.http.client import DaemonClient, DaemonRefused, DaemonUnreachable

        try:
            async with DaemonClient(self.url, token=token) as client:
                return await calls(client)
        except DaemonUnreachable as error:
            remedy = f"start one with `rgd serve`, or say where it is with --url or {URL_VARIABLE}"
            raise RgdError(f"{error}; {remedy}") from error
        except DaemonRefused as error:
            if error.status == 400:
                raise ConfigError(Fault(SOURCE, "", error.reason)) from error
            if error.status in {401, 403}:
                remedy = f"give a token with --token-file or {TOKEN_VARIABLE}"
                raise RgdError(f"the daemon refused: {error.reason}; {remedy}") from error
            raise RgdError(f"the daemon refused: {error}") from error

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
