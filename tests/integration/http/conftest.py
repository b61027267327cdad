"""The door of these tests: on uvloop, as the daemon by default.

Tests of connections run again on asyncio's own loop: what a route says depends on no loop.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
import uvloop

from rgd.adapters.http.settings import HttpSettings
from tests.integration.http.door import Door, open_door
from tests.support.certificates import make_certificate
from tests.support.relayed_server import RelayedServer
from tests.support.whole_daemon import HttpServer


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"uvloop": uvloop.new_event_loop}
    if item.path.stem in CONNECTIONS:
        loops["asyncio"] = asyncio.SelectorEventLoop
    return loops


#: The files whose tests are about connections.
CONNECTIONS = frozenset({
    "test_connections", "test_framing", "test_half_close", "test_hostile", "test_lane", "test_lifecycle",
    "test_stalls", "test_unread",
})  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make check` runs these tests as the daemon runs by default, on uvloop; the full run all."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "asyncio" in item.name:
            item.add_marker(pytest.mark.slow)


#: The files whose tests are about calls that are passed on: they run with the plane behind a socket, too.
RELAYED = frozenset({
    "test_as_pulsar", "test_backlogs", "test_dynamic_config", "test_groups", "test_openapi", "test_policies",
    "test_probes", "test_quoted",
})  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "door" in metafunc.fixturenames and metafunc.definition.path.stem in RELAYED:
        servers = [HttpServer, RelayedServer]
        metafunc.parametrize("door", servers, indirect=True, ids=["whole", "relayed"])


@pytest.fixture
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    server_type = getattr(request, "param", HttpServer)
    async with open_door(HttpSettings(port=0), server_type=server_type) as opened:
        yield opened


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of its own for 127.0.0.1, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))
