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


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with open_door(HttpSettings(port=0)) as opened:
        yield opened


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of its own for 127.0.0.1, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))
