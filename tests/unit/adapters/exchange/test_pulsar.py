"""A session that outlasts its clients goes on trying whatever its clients raise.

The client's part is played, for it is told to raise what a real one raises only where the machine has no
threads or descriptors left. Not covered: a real broker that goes away (tests/contract/exchange/test_outages.py).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from rgd.adapters.exchange import credential_watch, pulsar
from rgd.adapters.exchange.echo import EchoWatch
from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.exchange.pulsar_errors import TopicMissing
from rgd.adapters.exchange.pulsar_session import Delivery, PulsarSettings
from rgd.config.plain_files import Fingerprint, fingerprint, replace_file
from rgd.ports.exchange import ExchangeClosed, ExchangeDown

WAIT_S = 60


class PlayedSession:
    """One client; the first ones after `raises` was filled cannot be opened."""

    raises: list[Exception] = []  # noqa: RUF012 -- of all of them
    made: list["PlayedSession"] = []  # noqa: RUF012 -- of all of them

    def __init__(self, *args: object) -> None:
        self.made.append(self)
        self.args = args
        self.credentials: Fingerprint = ()
        self.is_answered = False
        self.is_opened = False
        self.fault: str | None = None
        self.is_closed = False
        self.raises_at_close = False

    async def open(self, _listener: Callable[[Delivery], None], *, from_start: bool) -> None:
        """Join, or raise what is next."""
        assert not from_start
        self.is_opened = True
        settings = self.args[2]
        assert isinstance(settings, PulsarSettings)
        self.credentials = fingerprint(settings.credential_files)
        if self.raises:
            raise self.raises.pop()

    async def answered(self) -> None:
        """Nothing is sent."""
        assert not self.is_closed
        self.is_answered = True

    async def close(self, *, is_replaced: bool = False) -> None:
        """Leave."""
        self.is_closed = True
        if self.raises_at_close:
            raise RuntimeError(is_replaced)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[PlayedSession]:
    monkeypatch.setattr(pulsar, "PulsarSession", PlayedSession)
    monkeypatch.setattr(pulsar, "LOOK_S", 0.001)
    monkeypatch.setattr(pulsar, "PAUSE_S_FIRST", 0.001)
    monkeypatch.setattr(credential_watch, "LOOK_S", 0.001)
    monkeypatch.setattr(PlayedSession, "made", [])
    return PlayedSession.made


async def test_a_session_is_replaced_whatever_its_clients_raise_before(
    made: list[PlayedSession],
) -> None:
    session = PulsarExchange("pulsar://here", "topic")
    await session.open()
    PlayedSession.raises += [OSError("no descriptors"), RuntimeError("can't start new thread")]
    made[0].fault = "sending failed"
    async with asyncio.timeout(WAIT_S):
        while not made[0].is_closed:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.001)
    assert session.attempts == 3
    assert session.trouble is not None
    assert "no descriptors" in session.trouble
    await session.close()
    assert all(one.is_closed for one in made)


async def test_closing_never_fails(
    made: list[PlayedSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = PulsarExchange("pulsar://here", "topic")
    await session.open()

    def boom(_echo: EchoWatch, _now: float) -> bool:
        raise OverflowError

    monkeypatch.setattr(EchoWatch, "is_overdue", boom)
    made[0].raises_at_close = True
    async with asyncio.timeout(WAIT_S):
        while session.trouble is None:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.001)
    await session.close()
    assert made[0].is_closed


async def test_a_changed_token_replaces_the_session_only_once_it_works(
    made: list[PlayedSession], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    session = PulsarExchange("pulsar://here", "topic", settings=PulsarSettings(token))
    await session.open()
    PlayedSession.raises += [ExchangeDown("refused")]
    # Whole: a look between emptying and writing would find one more.
    replace_file(token, b"the second one")
    async with asyncio.timeout(WAIT_S):
        while len(made) < 2 or not made[1].is_closed:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.001)
        replace_file(token, b"and a third one")
        while not made[0].is_closed:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.001)
    assert len(made) == session.attempts + 1 == 3
    assert made[0].is_answered
    assert not made[2].is_closed
    # The session that worked was never in trouble.
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    assert session.trouble is None
    await session.close()


@pytest.mark.parametrize(("is_prepared", "expected"), [(False, [1, 1, 2, 2]), (True, [0, 0, 1, 1])])
async def test_a_namespace_is_prepared_where_it_may_be_missing(
    made: list[PlayedSession], *, is_prepared: bool, expected: list[int]
) -> None:
    prepared, counts = [], []

    async def prepare() -> None:
        prepared.append(len(made))

    session = PulsarExchange("pulsar://here", "topic", prepare=prepare, is_prepared=is_prepared)
    faults = [ExchangeDown("away"), TopicMissing("missing"), ExchangeDown("away")]
    for fault in faults:
        PlayedSession.raises += [fault]
        with pytest.raises(type(fault)):
            await session.open()
        counts.append(len(prepared))
    await session.open()
    assert [*counts, len(prepared)] == expected
    await session.close()


async def test_one_that_is_closed_while_it_prepares_opens_no_session(
    made: list[PlayedSession],
) -> None:
    async def prepare() -> None:
        await session.close()

    session = PulsarExchange("pulsar://here", "topic", prepare=prepare)
    with pytest.raises(ExchangeClosed, match="meanwhile"):
        await session.open()
    assert [(one.is_opened, one.is_closed) for one in made] == [(False, True)]
