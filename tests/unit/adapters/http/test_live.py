"""What many streams have in common. The rest of live views is in tests/integration/http/test_live.py."""

from typing import Any, cast

from msgspec import Struct

from rgd.adapters.http.live import Live
from rgd.ports.daemon import Daemon
from rgd.ports.live_door import LiveDoor


class View(Struct):
    """As much of a snapshot as a stream needs."""

    number: int


class Newest:
    """As much of a live view as a stream needs."""

    def __init__(self) -> None:
        self.newest = View(7)

    def view(self) -> Any:
        return self.newest


async def test_all_streams_send_one_message_that_is_made_once() -> None:
    live = Live(cast("Daemon", None), cast("LiveDoor", Newest()))
    async with live.stream() as one, live.stream() as other:
        message = await anext(one)
        assert message == b'id: 7\ndata: {"number":7}\n\n'
        assert await anext(other) is message
