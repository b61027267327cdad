"""The files with rgd's credentials for Pulsar: the token, and PEM files for TLS.

Law: a file is read for each connection, so a rotated one counts from the next connection on. Its
content never gets into an error, a log or a `repr`. An unreadable file is `ExchangeDown` with the setting's
name and a remedy, because a secret that is mounted late appears by itself.
"""

import os
import stat
from pathlib import Path
from typing import Final

from rgd.ports.exchange import ExchangeDown

#: Longest token that is read, in bytes.
TOKEN_BYTES_MAX: Final = 1 << 16


def read_token(path: Path, setting: str) -> str:
    """The token in a file, without the line break at its end; may block like any file.

    Args:
        path: the file.
        setting: the setting that names the file, for errors.

    Raises:
        ExchangeDown: it is no readable file with one token; the message does not have its content.
    """
    try:
        text = _read(path).decode("ascii").strip()
    except UnicodeDecodeError:
        text = ""  # `from exc` would carry the content
    except OSError as exc:
        raise ExchangeDown(
            f"{setting}: {path}: {exc.strerror or exc}; expected a file with a token"
        ) from exc
    if not text or not text.isprintable() or " " in text:
        raise ExchangeDown(f"{setting}: {path}: expected one token on one line, got something else")
    return text


def check_pem(path: Path | None, setting: str) -> str | None:
    """The path of a readable file, as the client takes it.

    Raises:
        ExchangeDown: it is no readable file.
    """
    if path is None:
        return None
    try:
        _read(path)
    except OSError as exc:
        raise ExchangeDown(
            f"{setting}: {path}: {exc.strerror or exc}; expected a PEM file"
        ) from exc
    return str(path)


def _read(path: Path) -> bytes:
    """The beginning of a regular file; a FIFO would block its reader for ever."""
    # Without O_NONBLOCK the opening of a FIFO waits for its writer.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "not a regular file")
        return file.read(TOKEN_BYTES_MAX)
