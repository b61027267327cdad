"""A daemon that is a process and has nobody to exchange with: nobody listens where it looks for Pulsar."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.cluster import Daemon

#: Port 1 is reserved.
NOWHERE = "pulsar://127.0.0.1:1"
SOON_S = 300.0


def lone_daemon(folder: Path, **settings: str) -> Daemon:
    """One with a group and short rounds, not started yet.

    Args:
        folder: where it keeps everything.
        settings: further ones, as environment variables without `RGD_`.
    """
    (folder / "groups.yaml").write_text("groups: {gold: {publish: {messages: 1e6}}}\n")
    environ = {f"RGD_{key}": value for key, value in settings.items()}
    return Daemon("broker-1", folder, NOWHERE, {"RGD_EXCHANGE__ROUND_MS": "100"} | environ)


def plane_of(daemon: Daemon) -> psutil.Process:
    """The process of a daemon that runs which agrees with the others."""
    children = psutil.Process(daemon.pid).children()
    return next(one for one in children if "rgd.app.planes.plane_process" in one.cmdline())


@asynccontextmanager
async def running(daemon: Daemon) -> AsyncIterator[DaemonClient]:
    """Start a daemon; in the end it is stopped, and ends well."""
    try:
        await daemon.start()
        async with DaemonClient(daemon.base) as client, asyncio.timeout(SOON_S):
            yield client
    except BaseException:
        await daemon.stop()
        raise
    assert await daemon.stop() == 0
