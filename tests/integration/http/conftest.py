"""The door of these tests, on both event loops that the daemon may run on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import uvloop

from rgd.adapters.http.settings import HttpSettings
from tests.integration.http.door import Door, open_door


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with open_door(HttpSettings(port=0)) as opened:
        yield opened
