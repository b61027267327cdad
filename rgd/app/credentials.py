"""The HTTP server's tokens and certificates, read again when their files change.

Law: files are put in force whole or not at all. Ones that cannot be used leave the last good ones in force, which
is logged once and shown as `rgd_http_credentials_old`, and they are looked at again when they change. A token that is
taken out of the file is refused from the next request on, also on open connections; a certificate counts for
new handshakes.
How: the files are looked at every `LOOK_S`; the look follows links, because Kubernetes swaps a link to change a
Secret. Reading is done in a thread.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from rgd.adapters.http.front import Front
from rgd.adapters.http.tokens import Tokens
from rgd.config.plain_files import Fingerprint, fingerprint
from rgd.config.settings import HttpSettings
from rgd.config.tokens import load_tokens
from rgd.errors import ConfigError
from rgd.ports.metrics import Sample

#: Time between two looks at the files.
LOOK_S: Final = 1.0
#: Most logged characters of a fault.
FAULT_CHARS_MAX: Final = 500

_log = structlog.get_logger("rgd.http")


@dataclass(slots=True)
class _Watched:
    """Files that are put in force together."""

    what: str
    files: tuple[Path, ...]
    #: Reads them and puts them in force, by one assignment; called in a thread.
    put: Callable[[], object]
    #: None: what is in force was read before anybody looked, so they are read once more.
    stamp: Fingerprint | None = None
    is_old: bool = False


class Credentials:
    """Follows the files that say who may call.

    Args:
        server: whose credentials they are.
        settings: where the files are.
    """

    def __init__(self, server: Front, settings: HttpSettings) -> None:
        self._watched: list[_Watched] = []
        tokens = settings.tokens_file
        if tokens is not None:

            def put() -> None:
                server.replace_tokens(tokens_of(tokens))

            self._watched.append(_Watched("tokens", (tokens,), put))
        certificate = (settings.tls_cert, settings.tls_key, settings.tls_client_ca)
        if settings.tls_cert is not None:
            files = tuple(file for file in certificate if file is not None)
            self._watched.append(_Watched("certificate", files, server.reload_certificate))

    async def follow(self) -> None:
        """Read files again whenever they change."""
        while True:
            await asyncio.sleep(LOOK_S)
            for watched in self._watched:
                stamp = await asyncio.to_thread(fingerprint, watched.files)
                if stamp != watched.stamp:
                    is_news, watched.stamp = watched.stamp is not None, stamp
                    await self._take_up(watched, is_news=is_news)

    def samples(self) -> Iterable[Sample]:
        """Which files are not in force as they are now."""
        return [
            Sample("rgd_http_credentials_old", (watched.what,), watched.is_old)
            for watched in self._watched
        ]

    async def _take_up(self, watched: _Watched, *, is_news: bool) -> None:
        try:
            await asyncio.to_thread(watched.put)
        except ConfigError as error:
            watched.is_old = True
            for fault in error.faults:
                reason = str(fault)[:FAULT_CHARS_MAX]
                _log.error("refused changed credentials", what=watched.what, fault=reason)
        else:
            watched.is_old = False
            if is_news:
                files = [str(file) for file in watched.files]
                _log.info("reloaded credentials", what=watched.what, files=files)


def tokens_of(file: Path) -> Tokens:
    """The tokens of a file.

    Raises:
        ConfigError: it cannot be used.
    """
    grants = load_tokens(file)
    return Tokens(
        {digest: grant.scopes for digest, grant in grants.items()},
        {digest: grant.name for digest, grant in grants.items()},
    )
