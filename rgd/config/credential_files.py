"""Checks the files with a daemon's credentials for Pulsar before it starts.

Law: all faults are listed at once, with the setting that names the file, and none shows the content. A
secret that every user of the machine may read or replace is refused.

A daemon reads the files again whenever it connects (`rgd.adapters.exchange.credentials`). These checks
find the errors that an operator can fix before that.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rgd.config.settings import Settings
from rgd.errors import ConfigError, Fault

_SECRETS: Final = ("token_file", "tls_key", "admin_token_file")
_PUBLIC: Final = ("tls_ca", "tls_cert", "admin_ca_file")


def check_credential_files(settings: Settings, source: str) -> None:
    """Refuse files that cannot be used.

    Args:
        settings: has the names of the files.
        source: the source of the names, for the faults: a settings file, or all of a daemon's sources.

    Raises:
        ConfigError: carries every fault.
    """
    faults = [Fault(source, f"exchange.{name}", words) for name, words in _faults(settings)]
    if faults:
        raise ConfigError(*faults)


def _faults(settings: Settings) -> Iterator[tuple[str, str]]:
    for name in (*_SECRETS, *_PUBLIC):
        path: Path | None = getattr(settings.exchange, name)
        if path is None:
            continue
        try:
            status = path.stat()
        except OSError as exc:
            yield name, f"expected a file that can be read, got {path}: {exc.strerror}"
            continue
        mode = stat.S_IMODE(status.st_mode)
        if not stat.S_ISREG(status.st_mode):
            yield name, f"expected a regular file, got {path}, which is none"
        elif not os.access(path, os.R_OK):
            yield (
                name,
                f"expected a file that can be read, got {path}: it may not be read by this user",
            )
        elif name in _SECRETS and mode & (stat.S_IROTH | stat.S_IWOTH):
            yield (
                name,
                f"expected a file closed to others, got {path} with mode {mode:04o}; chmod o-rwx it",
            )
