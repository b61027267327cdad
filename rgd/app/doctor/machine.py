"""The machine: Python, Java, ports, open files, and the disk of the log's folder."""

import asyncio
import os
import platform
import shutil
import tempfile
from pathlib import Path
from typing import Final

from rgd.adapters.http.listening import listen_tcp, listen_unix
from rgd.adapters.usagelog.files import FolderLock, log_folder
from rgd.app.doctor.findings import Report
from rgd.app.open_files import connections_room, raise_open_files
from rgd.config.settings import Settings
from rgd.config.values import show_size, split_address
from rgd.errors import Unavailable
from rgd.ports.usagelog import LogLocked
from rgd.version import __version__

#: Written to find out whether a disk takes anything.
_TRIAL_BYTES: Final = 64 << 10


def python(report: Report, _settings: Settings) -> None:
    """The interpreter."""
    system = f"{platform.system()} {platform.machine()}"
    report.ok(f"rgd {__version__}, Python {platform.python_version()}, {system}")


def java(report: Report, _settings: Settings) -> None:
    """What `rgd report` needs beyond the daemon."""
    from rgd.analysis.session import require_java, require_spark  # noqa: PLC0415 -- Spark's, seldom asked for

    report.ok(f"{require_java()}, which rgd report uses")
    require_spark()


def open_files(report: Report, settings: Settings) -> None:
    """Whether callers get as many connections as the settings say."""
    limit, wanted = raise_open_files(), settings.http.connections_max
    room = connections_room(limit, settings.exchange.shards)
    if room >= wanted:
        report.ok(f"{limit:,} files may be open")
        return
    report.warning(
        f"{limit:,} files may be open, which leaves {room:,} connections of http.connections_max ({wanted:,}); "
        f"raise the limit to {limit + wanted - room:,} (ulimit -n, LimitNOFILE= of systemd), or lower the setting"
    )


async def ports(report: Report, settings: Settings) -> None:
    """Whether everything that a daemon listens on is free, or that daemon's own."""
    http = settings.http
    if report.is_running:
        report.ok(f"{http.listen} is in use by the daemon that runs")
        return
    for setting, address in (
        ("http.listen", http.listen),
        ("http.probe_listen", http.probe_listen),
    ):
        if address is not None:
            try:
                listener = await listen_tcp(asyncio.Protocol, split_address(address), setting)
            except Unavailable as error:
                report.refused(error)
            else:
                listener.close()
                report.ok(f"{address} is free")
    if http.unix_socket is not None:
        server, remove = await listen_unix(asyncio.Protocol, http.unix_socket)
        server.close()
        remove()
        report.ok(f"{http.unix_socket} can be made")


def disk(report: Report, settings: Settings) -> None:
    """Whether the log's folder can be written, is free for this daemon, and has room."""
    log = settings.log
    folder = log_folder(log.dir, settings.broker.name)
    at = existing(folder)
    try_to_write(at, "log.dir")
    if folder.exists() and not report.is_running:
        lock = FolderLock(folder)
        try:
            lock.acquire()
        except LogLocked as error:
            report.refused(error)
        else:
            lock.release()
    free = shutil.disk_usage(at).free
    used = sum(path.stat().st_size for path in folder.glob("*.log")) if folder.exists() else 0
    if free < log.segment_bytes:
        report.fault(
            f"log.dir: {_about(free)} free at {at}; expected room for a segment (log.segment_bytes, "
            f"{show_size(log.segment_bytes)}): free some, or name another folder"
        )
    elif free + used < log.local_bytes:
        report.warning(
            f"log.dir: {_about(free)} free at {at}, and log.local_bytes lets the log grow to "
            f"{show_size(log.local_bytes)}: lower it, or make room"
        )
    else:
        report.ok(f"{folder} can be written, {_about(free)} free")


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    path = path.absolute()
    return next(one for one in (path, *path.parents) if one.exists())


def try_to_write(folder: Path, setting: str) -> None:
    """Write a file and delete it again.

    Raises:
        Unavailable: it cannot be done.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_TRIAL_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Unavailable(
            f"{setting}: {folder} cannot be written: {error.strerror or error}; "
            "give it to this user, make room, or name another folder"
        ) from error


def _about(size: int) -> str:
    return show_size(size - size % (1 << 20))
