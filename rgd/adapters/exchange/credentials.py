"""The files with rgd's credentials for Pulsar: the token, and PEM files for TLS.

Law: a file is read for each connection, so a rotated one counts from the next connection on. Its
content never gets into an error, a log or a `repr`. An unreadable file is `ExchangeDown` with the setting's
name and a remedy, because a secret that is mounted late appears by itself.
"""

from pathlib import Path
from typing import Final

from rgd.config.plain_files import read_plain_file
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
        text = read_plain_file(path, TOKEN_BYTES_MAX).decode("ascii").strip()
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
        read_plain_file(path, TOKEN_BYTES_MAX)
    except OSError as exc:
        raise ExchangeDown(
            f"{setting}: {path}: {exc.strerror or exc}; expected a PEM file"
        ) from exc
    return str(path)
