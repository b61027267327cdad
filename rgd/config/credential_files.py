"""Checks the files with a daemon's credentials before it starts.

Law: all faults are listed at once, with the setting that names the file, and none shows the content. A
secret that every user of the machine may read or replace is refused.

A daemon reads the files again whenever it connects (`rgd.adapters.exchange.credentials`), or when they change
(`rgd.app.credentials`). These checks find the errors that an operator can fix before that.
"""

import os
import stat
from operator import attrgetter
from pathlib import Path
from typing import Final

from rgd.config.faults import Faults
from rgd.config.settings import Settings

_SECRETS: Final = (
    *("exchange.token_file", "exchange.tls_key", "exchange.admin_token_file"),
    *("http.tokens_file", "http.tls_key"),
)
_PUBLIC: Final = (
    *("exchange.tls_ca", "exchange.tls_cert", "exchange.admin_ca_file"),
    *("http.tls_cert", "http.tls_client_ca"),
)


def check_credential_files(settings: Settings, faults: Faults) -> None:
    """Refuse files that cannot be used.

    Args:
        settings: has the names of the files.
        faults: those of the source of the names: a settings file, or all of a daemon's sources.

    Raises:
        ConfigError: carries every fault.
    """
    for name in (*_SECRETS, *_PUBLIC):
        path: Path | None = attrgetter(name)(settings)
        if path is not None and (expected := _expected(path, is_secret=name in _SECRETS)):
            faults.add(name, f"expected {expected}")
    faults.raise_if_any()


def _expected(path: Path, *, is_secret: bool) -> str | None:
    """What such a file should be, and what this one is; None: it can be used."""
    try:
        status = path.stat()
    except OSError as exc:
        return f"a file that can be read, got {path}: {exc.strerror}"
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return f"a regular file, got {path}, which is none"
    if not os.access(path, os.R_OK):
        return f"a file that can be read, got {path}: it may not be read by this user"
    if is_secret and mode & (stat.S_IROTH | stat.S_IWOTH):
        return f"a file closed to others, got {path} with mode {mode:04o}; chmod o-rwx it"
    return None
