"""A session and a table's watch that meet what nobody foresaw, without a broker.

The client's part is played here, for no broker brings these faults about. Not covered: what a real
broker's faults do (tests/contract/exchange/test_faults.py).
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from rgd.adapters.exchange import pulsar_session
from rgd.adapters.exchange.inbox import ChangeInbox
from rgd.adapters.exchange.pulsar_reader import Delivery, PulsarReader
from rgd.adapters.exchange.pulsar_session import PulsarSession, PulsarSettings
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore, _Table
from rgd.ports.exchange import ExchangeDown

TIMEOUT_S = 60
URL = "pulsar://127.0.0.1:1"
TOPIC = "persistent://public/rgd/policies"


class Client:
    """A client that knows whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def create_producer(self, *_args: Any, **_kwargs: Any) -> "Client":
        return self

    def close(self) -> None:
        self.is_closed = True


class Reader(PulsarReader):
    """Opens at once, and raises when it reads."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(URL, TOPIC, PulsarSettings(), Counter(), from_start=True)
        self.fault = fault
        self.is_closed = False

    def open(self) -> None:
        """Join."""

    def read(self, _timeout_s: float) -> Iterator[Delivery]:
        raise self.fault

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def session() -> PulsarSession:
    return PulsarSession(URL, TOPIC, PulsarSettings(), Counter())


async def lost_after(session: PulsarSession) -> str:
    """Why a table over this session is lost."""
    loop = asyncio.get_running_loop()
    changes = ChangeInbox(loop, 10)
    watching = asyncio.create_task(PulsarPolicyStore(URL)._watch(session, _Table(loop, changes)))
    async with asyncio.timeout(TIMEOUT_S):
        with pytest.raises(ExchangeDown) as caught:
            await changes.take()
    await watching
    return str(caught.value)


class EndedSession(PulsarSession):
    """Reports that it does not work."""

    @property
    def fault(self) -> str:
        return "sending failed: TopicTerminated"


async def test_a_session_that_says_it_is_dead_is_a_table_that_is_lost() -> None:
    assert "TopicTerminated" in await lost_after(
        EndedSession(URL, TOPIC, PulsarSettings(), Counter())
    )


async def test_a_watch_that_raises_is_logged_and_its_table_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class NoThreads(PulsarSession):
        @property
        def fault(self) -> str:
            raise RuntimeError("can't start new thread")

    assert "internal error" in await lost_after(NoThreads(URL, TOPIC, PulsarSettings(), Counter()))
    assert "can't start new thread" in caplog.text


@pytest.mark.parametrize("fault", [RuntimeError("injected"), MemoryError()])
def test_a_reading_thread_that_ends_is_a_fault_of_the_session(
    session: PulsarSession, fault: Exception
) -> None:
    reader = Reader(fault)
    session._read(reader, lambda _delivery: None)
    assert session.fault == f"reading ended: {type(fault).__name__}"
    assert reader.is_closed


def test_a_client_whose_reading_thread_cannot_begin_is_closed(
    session: PulsarSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, reader = Client(), Reader(RuntimeError())

    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    def connect(_url: str, _settings: PulsarSettings) -> Client:
        return client

    def reader_of(*_args: object, **_kwargs: object) -> Reader:
        return reader

    monkeypatch.setattr(pulsar_session, "connect", connect)
    monkeypatch.setattr(pulsar_session, "PulsarReader", reader_of)
    with monkeypatch.context() as patch:
        patch.setattr(threading, "Thread", NoThread)
        with pytest.raises(RuntimeError, match="new thread"):
            session._open(lambda _delivery: None, from_start=True)
    assert client.is_closed
    assert reader.is_closed
