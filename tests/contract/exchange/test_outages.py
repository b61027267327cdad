"""Outages longer than the client's own patience, and what a session that was replaced leaves behind.

A TCP proxy stands between the members and a real broker. Judged is the order of events and the number
of attempts, not time. Not covered here: outages of minutes, many in a row (bench/outages.py), and the
policies table.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import psutil
import pytest

from rgd.adapters.exchange.pulsar import PulsarExchange, PulsarSettings
from rgd.ports.exchange import ExchangeDown
from tests.contract.exchange.backends import TIMEOUT_S, PulsarBackend, begun, threads_of_clients
from tests.support.exchanges import opened
from tests.support.policy_tables import until
from tests.support.tcp_proxy import TcpProxy

pytestmark = pytest.mark.slow

#: Short, so that many attempts fit into a test; not so short that a busy broker answers none.
SETTINGS = PulsarSettings(open_timeout_s=2, send_timeout_ms=800)
TOPIC = "non-persistent://public/default/outages"
#: The client's own pause is some seconds by now, and the next one as long again.
ATTEMPTS_AWAY = 4
#: The one under way may be lost, one may meet a broker that is not up yet, and a busy one may need longer than an
#: attempt takes.
ATTEMPTS_BACK_MAX = 5

on_embedded_only = pytest.mark.parametrize(
    "broker_backend", [pytest.param("embedded", marks=pytest.mark.embedded)], indirect=True
)


class Sender:
    """A member that speaks all the time, and what it hears of itself."""

    def __init__(self, url: str, settings: PulsarSettings) -> None:
        self.exchange = PulsarExchange(url, TOPIC, settings=settings)
        self.is_done = False
        self.spoken = 0
        self.heard = 0

    async def speak(self) -> None:
        while not self.is_done:
            self.spoken += 1
            with contextlib.suppress(ExchangeDown):
                await self.exchange.publish(b"%d" % self.spoken)
            await asyncio.sleep(0.05)

    async def listen(self) -> None:
        while True:
            for payload in await self.exchange.receive():
                self.heard = max(self.heard, int(payload))

    async def is_back(self) -> None:
        """Return once it hears something that it says from now on."""
        now = self.spoken
        await until(lambda: self.heard > now)


@pytest.fixture
def client_settings(request: pytest.FixtureRequest) -> PulsarSettings:
    settings: PulsarSettings = getattr(request, "param", SETTINGS)
    return settings


@pytest.fixture
async def proxy(broker_backend: PulsarBackend) -> AsyncIterator[TcpProxy]:
    port = int(broker_backend.url.rpartition(":")[2])
    async with TcpProxy(port) as proxy:
        yield proxy


@pytest.fixture
async def sender(proxy: TcpProxy, client_settings: PulsarSettings) -> AsyncIterator[Sender]:
    sender = Sender(f"pulsar://127.0.0.1:{proxy.port}", client_settings)
    await opened(sender.exchange.open)
    async with asyncio.TaskGroup() as tasks:
        working = [tasks.create_task(sender.speak()), tasks.create_task(sender.listen())]
        await sender.is_back()
        yield sender
        for task in working:
            task.cancel()
    await sender.exchange.close()


async def _attempts_fail(sender: Sender, more: int) -> None:
    wanted = sender.exchange.attempts + more
    await until(lambda: sender.exchange.attempts >= wanted)


@pytest.mark.parametrize("kind", ["refused", "stranded"])
async def test_after_a_long_outage_a_member_is_back_with_its_next_attempts(
    proxy: TcpProxy, sender: Sender, kind: str
) -> None:
    if kind == "refused":
        await proxy.refuse()
    else:
        proxy.freeze()
    await _attempts_fail(sender, ATTEMPTS_AWAY)
    assert sender.exchange.trouble
    if kind == "refused":
        await proxy.pass_on()
    else:
        # The old connection stays as it is: the client alone notices that after a minute.
        await proxy.strand()
    before = sender.exchange.attempts
    await sender.is_back()
    assert sender.exchange.attempts - before <= ATTEMPTS_BACK_MAX
    await until(lambda: sender.exchange.trouble is None)


@on_embedded_only
async def test_replaced_sessions_leave_no_thread_and_no_descriptor_behind(
    proxy: TcpProxy, sender: Sender
) -> None:
    process = psutil.Process()

    async def outage(*, is_refused: bool) -> None:
        if is_refused:
            await proxy.refuse()
        else:
            proxy.freeze()
        await _attempts_fail(sender, 2)
        await (proxy.pass_on() if is_refused else proxy.strand())
        await sender.is_back()
        await proxy.cut_stranded()

    await outage(is_refused=True)
    await outage(is_refused=False)
    before = process.num_fds(), threads_of_clients()
    for number in range(2):
        await outage(is_refused=number % 2 == 0)
    await until(lambda: process.num_fds() <= before[0] and threads_of_clients() <= before[1])


@on_embedded_only
async def test_a_publish_that_its_session_did_not_survive_is_lost_and_nothing_more(
    broker_backend: PulsarBackend, proxy: TcpProxy
) -> None:
    """Not ExchangeClosed: that ends whoever sends."""
    patient = PulsarSettings(open_timeout_s=1, send_timeout_ms=300_000)
    session = PulsarExchange(f"pulsar://127.0.0.1:{proxy.port}", TOPIC, settings=patient)
    await opened(session.open)
    proxy.freeze()
    publishing = await begun(session.publish(b"lost"))
    assert session._session is not None
    session._session._sending_fault = "injected"
    await until(lambda: session.attempts >= 1)
    await proxy.strand()
    with pytest.raises(ExchangeDown, match="replaced"):
        async with asyncio.timeout(TIMEOUT_S):
            await publishing
    await session.publish(b"heard")
    async with asyncio.timeout(TIMEOUT_S):
        assert await session.receive() == [b"heard"]
    await session.close()
