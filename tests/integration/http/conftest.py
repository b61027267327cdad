"""The door of these tests: on uvloop and with the fast lane, as the daemon by default.

Tests of hot calls run again without the lane, tests of connections also on asyncio's own loop: what a route says
depends on no loop.
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
    if item.path.stem in CONNECTIONS | {"test_both_paths"}:
        loops["asyncio"] = asyncio.SelectorEventLoop
    return loops


#: The files whose tests are about connections, which may bring hot calls.
CONNECTIONS = frozenset({
    "test_connections", "test_framing", "test_half_close", "test_hostile", "test_lifecycle", "test_stalls",
    "test_unread",
})  # fmt: skip
HOT_CALLS = frozenset({"test_acquire", "test_security", "test_settle"})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in CONNECTIONS | HOT_CALLS:
        metafunc.parametrize("hot_path", ["lane", "aiohttp"], indirect=True)


@pytest.fixture(autouse=True)
def hot_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of hot calls: `lane`, or `aiohttp` as where the lane's parser is not installed."""
    taken: str = getattr(request, "param", "lane")
    if taken == "aiohttp":
        monkeypatch.setattr("rgd.adapters.http.server.IS_AVAILABLE", False)
    return taken


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make check` runs these tests as the daemon runs by default, on uvloop and with the lane; the full run all."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and ("asyncio" in item.name or "aiohttp" in item.name):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with open_door(HttpSettings(port=0)) as opened:
        yield opened


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of its own for 127.0.0.1, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))
