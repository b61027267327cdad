"""The files with what a daemon shows to Pulsar, looked at before it starts.

Law: every fault is told at once, with the setting that names the file, and none shows what is in it. A
secret that everybody on the machine may read or replace is none, so it is refused.

A daemon reads the files again whenever it connects (`rgd.adapters.exchange.credentials`); here is only
what a person can mend before that.
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
        settings: which files there are.
        source: who says so, for the faults: a settings file, or all of a daemon's sources.

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
