"""Where the door listens: a TCP address, and perhaps a unix socket and an address for probes.

Law: a socket that cannot be opened is one line that says which setting and what
to do. The unix socket is this user's alone from before anybody can connect; a
stale one is replaced, a live one or another file never.
"""

import asyncio
import contextlib
import errno
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rgd.errors import Unavailable

#: Connections that wait to be accepted. So many may be accepted in one turn of the loop, before one
#: beyond the limits is closed: as many descriptors are kept for them (`rgd.app.open_files`).
BACKLOG: Final = 256

_MODE: Final = 0o600


#: Makes what answers a client that comes.
Accept = Callable[[], asyncio.Protocol]


async def listen_tcp(
    accept: Accept, address: tuple[str, int], setting: str = "http.listen"
) -> asyncio.Server:
    """Listen on an address.

    Args:
        accept: makes what answers.
        address: host and port.
        setting: which one has it.

    Raises:
        Unavailable: the address cannot be taken.
    """
    host, port = address
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(accept, host or None, port, backlog=BACKLOG)
    except OSError as exc:
        raise Unavailable(f"{setting}: {host}:{port}: {_why_not(exc)}") from exc


async def listen_unix(accept: Accept, path: Path) -> tuple[asyncio.Server, Callable[[], None]]:
    """Listen on a unix socket; what removes its file, unless somebody put another in its place.

    Raises:
        Unavailable: the socket cannot be made, or somebody listens on it.
    """
    try:
        listener = _bind(path)
    except OSError as exc:
        raise Unavailable(f"http.unix_socket: {path}: {_why_not(exc)}") from exc
    remove = _remover_of(path)
    loop = asyncio.get_running_loop()
    return await loop.create_server(accept, sock=listener, backlog=BACKLOG), remove


def _remover_of(path: Path) -> Callable[[], None]:
    inode = path.stat().st_ino

    def remove() -> None:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == inode:
                path.unlink()

    return remove


def _bind(path: Path) -> socket.socket:
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        # Nobody can connect before it listens, so nobody ever meets another mode.
        path.chmod(_MODE)
    except BaseException:
        listener.close()
        raise
    return listener


def _clear(path: Path) -> None:
    """Make room for a socket, where only a stale one stands."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Unavailable(f"http.unix_socket: {path}: there is a file that is no socket; move it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        else:
            raise OSError(errno.EADDRINUSE, "somebody listens on it")


def _why_not(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "it is in use; stop what listens there or choose another"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "permission denied; choose a port above 1023 or a folder that is yours"
    return f"cannot listen there: {error.strerror or error}"
