"""A server whose plane is behind a socket, as that of another process."""

import socket
from collections.abc import Callable

from typing_extensions import override

from rgd.adapters.http.forward import Asked, Forward
from rgd.adapters.http.relay import Relay
from rgd.adapters.http.relay_plane import PlaneEnd
from tests.support.whole_daemon import HttpServer


class RelayedServer(HttpServer):
    """Both halves in one process, joined by a pair of sockets."""

    @override
    async def open(self) -> None:
        self._forward = self.relay = Relay()
        await begin_plane(self.relay, self.plane.forward, self.plane.is_read)
        await super().open()

    @override
    async def close(self) -> None:
        await super().close()
        self.relay.close()


async def begin_plane(
    relay: Relay, forward: Forward, is_read: Callable[[Asked], bool] = lambda _asked: True
) -> PlaneEnd:
    """Let another plane take the place of the one that there was."""
    ours, others = socket.socketpair()
    end = PlaneEnd(forward, is_read)
    await relay.attach(ours)
    await end.attach(others)
    return end
