"""Opening, listening, draining, closing. Not covered: signals (rgd.app's business)."""

import asyncio
import socket
import stat
from pathlib import Path

import aiohttp
import pytest

from rgd.adapters.http.settings import HttpSettings
from rgd.core.policies.records import Change
from rgd.errors import Unavailable
from tests.integration.http.door import Door, metrics, open_door
from tests.support.child_processes import free_ports
from tests.support.whole_daemon import HttpServer
from tests.unit.adapters.http.small_daemon import SmallDaemon


def server_of(settings: HttpSettings) -> HttpServer:
    return HttpServer(SmallDaemon(), settings, metrics=metrics)


async def get_over(path: Path, call: str = "/healthz") -> int:
    connector = aiohttp.UnixConnector(path=str(path))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"http://rgd{call}") as response,
    ):
        return response.status


async def listens(door: Door) -> bool:
    try:
        await door.send("GET", "/healthz")
    except aiohttp.ClientConnectionError:
        return False
    return True


async def refused(settings: HttpSettings) -> str:
    """Why a server cannot be opened, in one line."""
    with pytest.raises(Unavailable) as caught:
        await server_of(settings).open()
    told = str(caught.value)
    assert "\n" not in told
    return told


async def test_a_port_in_use_is_one_line_with_the_remedy(door: Door) -> None:
    assert await refused(HttpSettings(port=door.server.port)) == (
        f"http.listen: 127.0.0.1:{door.server.port}: it is in use; "
        "stop what listens there or choose another"
    )


async def test_an_address_that_is_not_ours_is_one_line() -> None:
    told = await refused(HttpSettings(host="192.0.2.1", port=0, insecure=True))
    assert told.startswith("http.listen: 192.0.2.1:0: cannot listen there")


async def test_closing_frees_the_port_and_may_be_done_twice() -> None:
    # Nobody else is given it meanwhile.
    (port,) = free_ports(1)
    first = server_of(HttpSettings(port=port))
    async with first:
        assert first.port == port
    await first.close()

    async with server_of(HttpSettings(port=port)) as second:
        assert second.port == port


async def test_closing_lets_a_request_in_flight_end() -> None:
    daemon = SmallDaemon()
    begun, go_on = asyncio.Event(), asyncio.Event()
    write = daemon.change

    async def slow_write(key: str, change: Change) -> None:
        begun.set()
        await go_on.wait()
        await write(key, change)

    daemon.change = slow_write  # type: ignore[method-assign]  # the test's own daemon, slowed
    async with open_door(HttpSettings(port=0), daemon=daemon) as door, asyncio.TaskGroup() as tasks:
        putting = tasks.create_task(door.call("PUT", "/v1/groups/new", {}))
        await begun.wait()
        closing = tasks.create_task(door.server.close())
        while await listens(door):
            pass
        go_on.set()

    assert putting.result().status == 200
    assert closing.done()


async def test_closing_does_not_wait_for_ever() -> None:
    daemon = SmallDaemon()
    begun = asyncio.Event()

    async def hang(key: str, change: Change) -> None:
        del key, change
        begun.set()
        await asyncio.Event().wait()

    daemon.change = hang  # type: ignore[method-assign]  # the test's own daemon, hung
    async with open_door(HttpSettings(port=0, close_timeout_s=0.05), daemon=daemon) as door:
        putting = asyncio.ensure_future(door.call("PUT", "/v1/groups/new", {}))
        await begun.wait()
        async with asyncio.timeout(60):
            await door.server.close()
        with pytest.raises(aiohttp.ClientError):
            await putting


async def test_closing_does_not_wait_for_idle_connections(door: Door) -> None:
    await door.call("GET", "/healthz")  # kept alive by the client

    async with asyncio.timeout(60):
        await door.server.close()


# --- the unix socket -----------------------------------------------------------------------------------


async def test_a_unix_socket_is_a_second_way_in_for_this_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "rgd.sock"
    async with open_door(HttpSettings(port=0, unix_socket=path)) as door:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await get_over(path) == 200
        assert (await door.call("GET", "/healthz")).status == 200

    assert not path.exists()


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "rgd.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))

    async with open_door(HttpSettings(port=0, unix_socket=path)):
        assert await get_over(path) == 200


async def test_a_live_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rgd.sock"
    async with open_door(HttpSettings(port=0, unix_socket=path)):
        told = await refused(HttpSettings(port=0, unix_socket=path))
        assert told.startswith(f"http.unix_socket: {path}: it is in use")
        assert await get_over(path) == 200


async def test_a_file_in_the_sockets_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("precious")
    told = await refused(HttpSettings(port=0, unix_socket=path))
    assert "there is a file that is no socket" in told
    assert path.read_text() == "precious"


@pytest.mark.parametrize("name", ["no/such/folder/rgd.sock", "x" * 120])
async def test_a_socket_that_cannot_be_made_is_one_line(tmp_path: Path, name: str) -> None:
    told = await refused(HttpSettings(port=0, unix_socket=tmp_path / name))
    assert told.startswith("http.unix_socket: ")


async def test_a_socket_that_another_took_over_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "rgd.sock"
    async with open_door(HttpSettings(port=0, unix_socket=path)):
        path.unlink()
        path.write_text("another")

    assert path.read_text() == "another"
