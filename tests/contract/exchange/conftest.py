"""Backends for the behaviour suite, and members that are closed when their test ends.

`backend` is every ground the suite must hold on, `broker_backend` those with a broker to take away.
Apache Pulsar is the one of the whole run (tests/support/fixtures.py); each test has topics of its own.
"""

import re
from collections.abc import AsyncGenerator

import pytest

from rgd.adapters.exchange.pulsar import PulsarSettings
from rgd.core.exchange.shards import WHOLE, Shard
from rgd.ports.exchange import Exchange, PolicyStore
from tests.contract.exchange.backends import (
    PATIENT,
    QUEUE_MAX,
    ApacheBackend,
    Backend,
    EmbeddedBackend,
    MakeExchange,
    MakeStore,
    MemoryBackend,
    PulsarBackend,
)

BROKERS = [
    pytest.param("embedded", marks=pytest.mark.embedded),
    pytest.param("apache", marks=pytest.mark.pulsar),
]


@pytest.fixture
def client_settings() -> PulsarSettings:
    """How members and tables of a broker are set; a module that takes brokers away has its own."""
    return PATIENT


async def _broker_backend(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    settings: PulsarSettings,
) -> AsyncGenerator[PulsarBackend]:
    name = re.sub(r"\W+", "-", request.node.name)
    if kind == "embedded":
        folder = tmp_path_factory.mktemp("broker")
        async with EmbeddedBackend.running(folder, name, settings) as embedded:
            yield embedded
    else:
        apache_pulsar = request.getfixturevalue("apache_pulsar")
        yield await ApacheBackend.start(apache_pulsar, name, settings)
        if apache_pulsar.pid is None:  # a test failed while the broker was away
            apache_pulsar.restart()


@pytest.fixture(params=["memory", *BROKERS])
async def backend(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    client_settings: PulsarSettings,
) -> AsyncGenerator[Backend]:
    if request.param == "memory":
        yield MemoryBackend()
        return
    async for each in _broker_backend(request.param, request, tmp_path_factory, client_settings):
        yield each


@pytest.fixture(params=BROKERS)
async def broker_backend(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    client_settings: PulsarSettings,
) -> AsyncGenerator[PulsarBackend]:
    async for each in _broker_backend(request.param, request, tmp_path_factory, client_settings):
        yield each


@pytest.fixture
async def exchange(request: pytest.FixtureRequest) -> AsyncGenerator[MakeExchange]:
    """Makes members on the test's backend, not open yet; closes them in the end."""
    ground = _ground(request)
    made: list[Exchange] = []

    def make(*, queue_max: int = QUEUE_MAX, shard: Shard = WHOLE) -> Exchange:
        made.append(ground.exchange(queue_max=queue_max, shard=shard))
        return made[-1]

    yield make
    for member in made:
        await member.close()


@pytest.fixture
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[MakeStore]:
    """Makes policy stores on the test's backend, not open yet; closes them in the end."""
    ground = _ground(request)
    made: list[PolicyStore] = []

    def make() -> PolicyStore:
        made.append(ground.store())
        return made[-1]

    yield make
    for each in made:
        await each.close()


def _ground(request: pytest.FixtureRequest) -> Backend:
    name = "backend" if "backend" in request.fixturenames else "broker_backend"
    ground: Backend = request.getfixturevalue(name)
    return ground
