"""A reader and brokers that send it on, ask for its token again, or fall silent.

Brokers are played over real sockets, because one standalone Pulsar never redirects. Not covered: a real broker
(tests/contract/exchange), what entries are read as (tests/property/test_pulsar_delivery.py).
"""

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rgd.adapters.exchange import pulsar_reader
from rgd.adapters.exchange.deadline import Deadline
from rgd.adapters.exchange.pulsar_client import PulsarSettings
from rgd.adapters.exchange.pulsar_connection import COMMAND_BYTES, ConnectionLost, Refused
from rgd.adapters.exchange.pulsar_reader import RECEIVER_QUEUE_MAX, PulsarReader
from rgd.errors import ConfigError
from rgd.ports.exchange import UNREADABLE
from rgd.wire import pulsar_commands as wire
from rgd.wire.api_pb2 import (
    BaseCommand,
    CommandAuthChallenge,
    CommandConnected,
    CommandError,
    CommandLookupTopicResponse,
    CommandMessage,
    CommandPing,
    CommandPong,
    CommandSuccess,
    MessageIdData,
)
from rgd.wire.pulsar_commands import FrameBuffer, framed

TOPIC = "non-persistent://public/rgd/usage"
TIMEOUT_S = 20

Answer = Callable[[BaseCommand], list[BaseCommand]]

CONNECTED = BaseCommand(type=wire.CONNECTED, connected=CommandConnected())


def lookup(url: str, **more: object) -> BaseCommand:
    """An answer to a lookup: this broker has the topic, unless `more` says otherwise."""
    found = CommandLookupTopicResponse(
        **{"brokerServiceUrl": url, "response": wire.OWNER, "request_id": 1, **more}  # type: ignore[arg-type]
    )
    return BaseCommand(type=wire.LOOKUP_RESPONSE, lookupTopicResponse=found)


class PlayedBroker:
    """Answers each command as usual, unless `answers` has another answer for its type."""

    def __init__(self) -> None:
        self.heard: list[BaseCommand] = []
        self.answers: dict[int, Answer] = {}
        self.is_heard = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"pulsar://127.0.0.1:{self._listener.getsockname()[1]}"
        self._connections: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """End every connection, and listen no more."""
        for one in (self._listener, *self._connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # a close alone does not end a thread's wait
            one.close()

    def send(self, data: bytes) -> None:
        """Send over the first connection."""
        self._connections[0].sendall(data)

    def types(self) -> list[int]:
        return [command.type for command in self.heard]

    def wait_for(self, kind: int) -> BaseCommand:
        with self.is_heard:
            assert self.is_heard.wait_for(lambda: kind in self.types(), TIMEOUT_S)
        return next(command for command in self.heard if command.type == kind)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = FrameBuffer()
        try:
            while data := connection.recv(1 << 16):
                for frame in buffer.feed(data):
                    for answer in self._answers(frame.command):
                        connection.sendall(framed(answer))
        except OSError:
            return

    def _answers(self, command: BaseCommand) -> list[BaseCommand]:
        with self.is_heard:
            self.heard.append(command)
            self.is_heard.notify_all()
        if command.type in self.answers:
            return self.answers[command.type](command)
        usual = {
            wire.CONNECT: CONNECTED,
            wire.LOOKUP: lookup(self.url),
            wire.SUBSCRIBE: BaseCommand(type=wire.SUCCESS, success=CommandSuccess(request_id=1)),
            wire.PING: BaseCommand(type=wire.PONG, pong=CommandPong()),
        }
        return [usual[command.type]] if command.type in usual else []


@contextmanager
def brokers(count: int) -> Iterator[list[PlayedBroker]]:
    played = [PlayedBroker() for _ in range(count)]
    try:
        yield played
    finally:
        for one in played:
            one.close()


def reader_of(
    url: str, settings: PulsarSettings | None = None, dropped: Counter[str] | None = None
) -> PulsarReader:
    counts = Counter() if dropped is None else dropped
    return PulsarReader(url, TOPIC, settings or PulsarSettings(), counts, from_start=False)


def test_a_redirect_leads_to_the_broker_that_has_the_topic() -> None:
    with brokers(3) as (asked, between, owner):
        asked.answers[wire.LOOKUP] = lambda _: [
            lookup(between.url, response=wire.REDIRECT, authoritative=True)
        ]
        between.answers[wire.LOOKUP] = lambda _: [lookup(owner.url)]
        reader = reader_of(asked.url, PulsarSettings(listener_name="inside"))
        reader.open()
        assert wire.SUBSCRIBE in owner.types()
        assert wire.SUBSCRIBE not in asked.types() + between.types()
        first, second = asked.wait_for(wire.LOOKUP), between.wait_for(wire.LOOKUP)
        assert not first.lookupTopic.authoritative
        assert second.lookupTopic.authoritative
        assert second.lookupTopic.advertised_listener_name == "inside"
        reader.close()


def test_behind_a_proxy_the_broker_is_named_to_the_proxy() -> None:
    with brokers(1) as (proxy,):
        proxy.answers[wire.LOOKUP] = lambda _: [
            lookup("pulsar://inner:6650", proxy_through_service_url=True)
        ]
        reader = reader_of(proxy.url)
        reader.open()
        connects = [one.connect for one in proxy.heard if one.type == wire.CONNECT]
        assert [one.proxy_to_broker_url for one in connects] == ["", "inner:6650"]
        reader.close()


def test_redirects_in_circles_end() -> None:
    settings = PulsarSettings(retry_pause_s=1e9)  # no retries
    with brokers(1) as (broker,):
        broker.answers[wire.LOOKUP] = lambda _: [lookup(broker.url, response=wire.REDIRECT)]
        reader = reader_of(broker.url, settings)
        with pytest.raises(Refused, match="redirects"):
            reader.open()


def test_of_several_brokers_one_that_is_away_is_ignored() -> None:
    # A port that is bound and not listened on refuses every connection.
    with brokers(1) as (broker,), socket.socket() as away:
        away.bind(("127.0.0.1", 0))
        port = away.getsockname()[1]
        here = broker.url.partition("://")[2]
        for hosts in (f"127.0.0.1:{port},{here}", f"{here},127.0.0.1:{port}"):
            reader = reader_of(f"pulsar://{hosts}")
            reader.open()
            reader.close()


def test_a_broker_that_asks_for_the_token_again_gets_what_the_file_has_now(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    with brokers(1) as (broker,):
        challenge = BaseCommand(type=wire.AUTH_CHALLENGE, authChallenge=CommandAuthChallenge())
        broker.answers[wire.FLOW] = lambda _: [challenge]
        broker.answers[wire.SUBSCRIBE] = lambda _: [
            BaseCommand(type=wire.PING, ping=CommandPing()),
            BaseCommand(type=wire.SUCCESS, success=CommandSuccess(request_id=1)),
        ]
        reader = reader_of(broker.url, PulsarSettings(token_file=token))
        broker.answers[wire.CONNECT] = lambda _: (token.write_text("second"), [CONNECTED])[1]
        reader.open()
        connect = broker.wait_for(wire.CONNECT).connect
        assert (connect.auth_method_name, connect.auth_data) == ("token", b"first")
        assert broker.wait_for(wire.AUTH_RESPONSE).authResponse.response.auth_data == b"second"
        broker.wait_for(wire.PONG)
        reader.close()


def test_a_refusal_has_the_brokers_own_words() -> None:
    with brokers(1) as (broker,):
        refusal = CommandError(request_id=1, error=4, message=b"not authorized")
        broker.answers[wire.SUBSCRIBE] = lambda _: [BaseCommand(type=wire.ERROR, error=refusal)]
        with pytest.raises(Refused, match="not authorized") as raised:
            reader_of(broker.url).open()
        assert raised.value.fault == "AuthorizationError"


def message_of(ledger: int, entry: int) -> BaseCommand:
    at = MessageIdData(ledgerId=ledger, entryId=entry)
    return BaseCommand(type=wire.MESSAGE, message=CommandMessage(consumer_id=1, message_id=at))


def test_permits_go_back_for_what_cannot_be_read() -> None:
    unreadable = message_of(1, 1)
    dropped: Counter[str] = Counter()
    with brokers(1) as (broker,):
        reader = reader_of(broker.url, dropped=dropped)
        reader.open()
        broker.heard.clear()
        broker.send(framed(unreadable) * (RECEIVER_QUEUE_MAX // 2))
        while dropped[UNREADABLE] < RECEIVER_QUEUE_MAX // 2:
            assert not list(reader.read(TIMEOUT_S))
        assert broker.wait_for(wire.FLOW).flow.messagePermits == RECEIVER_QUEUE_MAX // 2
        reader.close()


def test_a_reader_that_was_closed_while_it_opened_leaves_nothing() -> None:
    with brokers(1) as (broker,):
        reader = reader_of(broker.url)
        reader.close()
        with pytest.raises(ConnectionLost, match="meanwhile"):
            reader.open()
        assert reader._connection is None


def test_what_comes_before_an_answer_is_bounded() -> None:
    settings = PulsarSettings(early_bytes_max=100 * COMMAND_BYTES)
    pong = BaseCommand(type=wire.PONG, pong=CommandPong())
    with brokers(1) as (broker,):
        broker.answers[wire.LOOKUP] = lambda _: [*[pong] * 200, lookup(broker.url)]
        with pytest.raises(ConnectionLost, match="too much"):
            reader_of(broker.url, settings).open()


def test_lookups_that_lead_on_end_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # That of all lookups; each has its own, which a busy machine keeps.
    monkeypatch.setattr(pulsar_reader, "Deadline", lambda _seconds: Deadline(0.05))
    settings = PulsarSettings(open_timeout_s=TIMEOUT_S, redirects_max=1 << 30)
    with brokers(1) as (broker,):
        broker.answers[wire.LOOKUP] = lambda _: [lookup(broker.url, response=wire.REDIRECT)]
        with pytest.raises(Refused, match="lead on"):
            reader_of(broker.url, settings).open()


def test_one_that_is_stopped_asks_no_more() -> None:
    with brokers(1) as (broker,):
        reader = reader_of(broker.url, PulsarSettings(open_timeout_s=TIMEOUT_S))

        def not_ready(_: BaseCommand) -> list[BaseCommand]:
            reader.stop()
            return [lookup(broker.url, response=2, error=6)]

        broker.answers[wire.LOOKUP] = not_ready
        with pytest.raises((Refused, ConnectionLost)):
            reader.open()
        assert broker.types().count(wire.LOOKUP) == 1


def read_on(reader: PulsarReader) -> None:
    """Read until that raises."""
    while True:
        assert not list(reader.read(0.01))


def test_a_silent_broker_is_asked_for_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulsar_reader, "PING_S", 0)
    with brokers(1) as (broker,):
        reader = reader_of(broker.url, PulsarSettings(sign_timeout_s=TIMEOUT_S))
        reader.open()
        broker.heard.clear()
        assert not list(reader.read(0.01))
        broker.wait_for(wire.PING)
        assert not list(reader.read(TIMEOUT_S)), "its answer is a sign"
        reader.close()
        reader = reader_of(broker.url, PulsarSettings(sign_timeout_s=0.1))
        reader.open()
        broker.answers[wire.PING] = lambda _: []
        with pytest.raises(ConnectionLost, match=r"no answer within 0\.1 s"):
            read_on(reader)
        reader.close()


def test_a_part_of_a_message_is_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulsar_reader, "PING_S", 0)
    sent = framed(BaseCommand(type=wire.PONG, pong=CommandPong()))
    with brokers(1) as (broker,):
        reader = reader_of(broker.url, PulsarSettings(sign_timeout_s=0))
        reader.open()
        broker.answers[wire.PING] = lambda _: []
        for part in (sent[:3], sent[3:]):
            assert not list(reader.read(0.01)), "it only asks"
            broker.send(part)
            assert not list(reader.read(TIMEOUT_S))
        reader.close()


@pytest.mark.parametrize("url", ["kafka://h:1", "h:1", "pulsar://h:99999", "pulsar://[::1"])
def test_what_is_no_url_is_a_fault_of_the_settings(url: str) -> None:
    with pytest.raises(ConfigError, match=r"exchange\.url"):
        reader_of(url)
