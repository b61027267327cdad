"""What becomes of exchange and table when the broker is killed, comes back, or was never there.

With SIGKILL, on the embedded broker and, where the broker has a say in it, on Apache Pulsar. Not
covered here: who restarts an embedded broker (tests/integration/exchange), and a network that loses
packets.
"""

import asyncio
import socket
from dataclasses import replace

import psutil
import pytest

from rgd.adapters.exchange.pulsar import PulsarExchange, PulsarSettings
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.errors import ConfigError
from rgd.ports.exchange import Exchange, ExchangeClosed, ExchangeDown, PolicyStore
from tests.contract.exchange.backends import (
    IMPATIENT,
    PATIENT,
    STANDSTILL_MAX,
    TIMEOUT_S,
    EmbeddedBackend,
    MakeExchange,
    MakeStore,
    PulsarBackend,
    begun,
    hear,
    learn,
    longest_standstill,
    lost,
    open_all,
    read,
    threads_of_clients,
)
from tests.support.exchanges import heard, hears_itself, opened
from tests.support.policy_tables import until
from tests.support.tcp_proxy import TcpProxy

pytestmark = pytest.mark.slow

#: For what the client does by itself, whoever speaks at the other end: a restart of Apache takes 12 s.
on_embedded_only = pytest.mark.parametrize(
    "broker_backend", [pytest.param("embedded", marks=pytest.mark.embedded)], indirect=True
)


#: For what is written to a broker that has just come back, or that is never away: on a busy machine it may take seconds.
patient = pytest.mark.parametrize("client_settings", [PATIENT], ids=["patient"])


@pytest.fixture
def client_settings() -> PulsarSettings:
    """A broker that is away is noticed soon."""
    return IMPATIENT


async def test_an_exchange_is_down_while_the_broker_is_and_comes_back_by_itself(
    broker_backend: PulsarBackend, exchange: MakeExchange
) -> None:
    members = [exchange() for _ in range(2)]
    await open_all(members)
    await broker_backend.kill()
    with pytest.raises(ExchangeDown, match=r"exchange\.url") as raised:
        async with asyncio.timeout(TIMEOUT_S):
            await members[0].publish(b"nobody hears this")
    assert raised.value.transient
    assert broker_backend.url in str(raised.value)
    await broker_backend.restart()
    for number, sender in enumerate(members):
        await heard(sender, *members, word=b"%d" % number)


@patient
async def test_a_table_survives_the_brokers_sigkill_and_its_members_open_it_again(
    broker_backend: PulsarBackend, store: MakeStore
) -> None:
    writer, reader = store(), store()
    await writer.open()
    await reader.open()
    await writer.put("group:gold", b"1")
    await writer.put("group:trial", b"1")
    assert len(await learn(reader, 2)) == 2
    await broker_backend.kill()
    # On a busy machine the writer knows of the kill already, and the write fails at once.
    under_way = asyncio.create_task(writer.put("group:gold", b"2"))
    await lost(writer)
    await lost(reader)
    with pytest.raises(ExchangeDown):
        await writer.put("group:gold", b"2")
    await broker_backend.restart()
    await opened(writer.open)
    (outcome,) = await asyncio.gather(under_way, return_exceptions=True)
    assert outcome is None or isinstance(outcome, ExchangeDown)
    # The write that failed may have been taken after all, and then it came before this one.
    assert dict(await opened(reader.open))["group:trial"] == b"1"
    await writer.put("group:gold", b"3")
    assert await learn(reader, 1) == [("group:gold", b"3")]
    assert await read(store()) == {"group:gold": b"3", "group:trial": b"1"}


@on_embedded_only
async def test_a_table_whose_broker_does_not_answer_is_lost_and_opened_again_without_a_leak(
    broker_backend: EmbeddedBackend,
) -> None:
    async with TcpProxy.before(broker_backend.url) as proxy:
        settings = replace(broker_backend.settings, sign_timeout_s=0.2)
        table = PulsarPolicyStore(proxy.url, broker_backend.policies, settings=settings)
        beside = broker_backend.store()
        await opened(table.open)
        await beside.open()
        process = psutil.Process()
        before = process.num_fds(), threads_of_clients()
        for number in range(3):
            proxy.swallow()
            await beside.put("group:gold", b"%d" % number)
            await lost(table, match="no answer within 0.2 s")
            await proxy.pass_on()
            assert (await opened(table.open))[-1] == ("group:gold", b"%d" % number)
        # A client's last thread ends a moment after its session.
        await until(
            lambda: process.num_fds() <= before[0] + 2 and threads_of_clients() <= before[1] + 2
        )
        await table.close()
        await beside.close()


@on_embedded_only
async def test_nothing_hangs_when_closing_while_the_broker_is_away(
    broker_backend: PulsarBackend, exchange: MakeExchange, store: MakeStore
) -> None:
    member, table = exchange(), store()
    await member.open()
    await opened(table.open)
    await broker_backend.kill()
    publishing = asyncio.create_task(member.publish(b"nobody hears this"))
    putting = asyncio.create_task(table.put("key", b"value"))
    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.gather(member.close(), table.close())
    for task in (publishing, putting):
        # Down where the kill was noticed before, as on a busy machine.
        with pytest.raises((ExchangeClosed, ExchangeDown)):
            await task
    await broker_backend.restart()


@on_embedded_only
async def test_nothing_hangs_when_the_broker_does(
    broker_backend: EmbeddedBackend, exchange: MakeExchange, store: MakeStore
) -> None:
    member, table = exchange(), store()
    await member.open()
    await opened(table.open)
    async with broker_backend.frozen(), asyncio.timeout(TIMEOUT_S):
        with pytest.raises(ExchangeDown):
            await member.publish(b"nobody hears this")
        with pytest.raises(ExchangeDown):
            await table.put("key", b"value")
        leaving = asyncio.create_task(_close_both(member, table))
        assert await longest_standstill(leaving) < STANDSTILL_MAX
        await leaving


async def _close_both(member: Exchange, table: PolicyStore) -> None:
    await asyncio.gather(member.close(), table.close())


@patient
@on_embedded_only
async def test_members_leave_no_thread_and_no_descriptor_behind(
    broker_backend: PulsarBackend, exchange: MakeExchange, store: MakeStore
) -> None:
    async def come_and_go() -> None:
        member, table = exchange(), store()
        await member.open()
        await table.open()
        await member.publish(b"hello")
        assert await hear(member, 1) == [b"hello"]
        await _close_both(member, table)

    process = psutil.Process()
    await come_and_go()
    before = process.num_fds(), threads_of_clients()
    for _ in range(10):
        await come_and_go()
    # A client's last thread ends a moment after `close`.
    await until(lambda: process.num_fds() <= before[0] and threads_of_clients() <= before[1])


@on_embedded_only
async def test_joining_fails_within_its_timeout_and_may_be_tried_again(
    broker_backend: PulsarBackend, exchange: MakeExchange, store: MakeStore
) -> None:
    await broker_backend.kill()
    member, table = exchange(), store()
    for joining in (member, table):
        opening = asyncio.create_task(joining.open())
        async with asyncio.timeout(TIMEOUT_S):
            assert await longest_standstill(opening) < STANDSTILL_MAX
        with pytest.raises(ExchangeDown, match="check that a Pulsar broker listens") as raised:
            await opening
        assert broker_backend.url in str(raised.value)
    await broker_backend.restart()
    await member.open()
    await hears_itself(member)
    assert dict(await opened(table.open)) == {}


@on_embedded_only
async def test_the_first_of_several_urls_may_be_dead(broker_backend: PulsarBackend) -> None:
    dead = f"pulsar://127.0.0.1:{_dead_port()}"
    topic = "non-persistent://public/default/several-urls"
    url = f"{dead},{broker_backend.url.removeprefix('pulsar://')}"
    member = PulsarExchange(url, topic, settings=PATIENT)
    await member.open()
    await member.publish(b"hello")
    assert await hear(member, 1) == [b"hello"]
    await member.close()


async def test_a_cancelled_or_closed_join_leaves_nothing_behind() -> None:
    url = f"pulsar://127.0.0.1:{_dead_port()}"
    cancelled, closed = (PulsarExchange(url, settings=IMPATIENT) for _ in range(2))
    joining = await begun(cancelled.open()), await begun(closed.open())
    joining[0].cancel()
    await closed.close()
    with pytest.raises(asyncio.CancelledError):
        await joining[0]
    with pytest.raises((ExchangeClosed, ExchangeDown)):
        await joining[1]
    await cancelled.close()


@pytest.mark.parametrize(
    ("url", "topic", "key"),
    [
        pytest.param("kafka://127.0.0.1:9092", "", "exchange.url", id="another protocol"),
        pytest.param("127.0.0.1:6650", "", "exchange.url", id="no protocol"),
        pytest.param("pulsar://127.0.0.1:99999", "", "exchange.url", id="no such port"),
        pytest.param("pulsar://127.0.0.1:1", "persistent://only-one", "exchange.topic", id="topic"),
    ],
)
async def test_what_no_broker_could_repair_is_a_fault_of_the_settings(
    url: str, topic: str, key: str
) -> None:
    policies = PulsarPolicyStore(url, topic or "persistent://public/rgd/p", settings=IMPATIENT)
    with pytest.raises(ConfigError, match=key):
        await policies.open()
    await policies.close()


def _dead_port() -> int:
    """A port on which nobody listens, and which nobody is given: it is not an ephemeral one."""
    for port in range(19_000, 20_000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("a thousand ports, all taken")
