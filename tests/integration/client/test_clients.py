"""Both forms of the client against a whole daemon: answers, waiting, an absent daemon, sockets, tokens, TLS, forks.

Not covered: leases (tests/property/test_client.py), the core's own rules (tests/unit/client).
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tokens import Tokens
from rgd.client import (
    Answer,
    BadSetting,
    BlockingClient,
    Client,
    ClientClosed,
    ClientSettings,
    Name,
    Question,
    QuestionRefused,
    Source,
)
from rgd.core.policies.model import Attachments, Group, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.door import Scope, digest_of
from tests.integration.http.door import open_door
from tests.support.certificates import make_certificate
from tests.support.running_daemon import RunningDaemon, running_daemon

ORDERS = Name("acme", "orders")
#: Enough for a daemon that answers on a busy machine; no test waits so long.
PATIENT_S = 120.0


def policies() -> PolicySnapshot:
    def rates(messages: int) -> Limit:
        return Limit(Rates(rate_of(messages), rate_of(None)))

    # One for each form of the client: a large request leaves debt for seconds.
    slow = {name: Group(name, rates(100)) for name in ("ask_async", "ask_blocking")}
    groups = {"gold": Group("gold", rates(1_000_000)), **slow}
    return PolicySnapshot(groups, Attachments(namespaces={"acme/orders": "gold"}))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path_factory.mktemp("daemon"), policies()) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def ask_async(settings: ClientSettings, *questions: Question, wait_s: float = 0) -> list[Answer]:
    async def ask() -> list[Answer]:
        async with Client(settings) as client:
            return [await client.ask(question, wait_s=wait_s) for question in questions]

    return asyncio.run(ask())


def ask_blocking(settings: ClientSettings, *questions: Question, wait_s: float = 0) -> list[Answer]:
    with BlockingClient(settings) as client:
        return [client.ask(question, wait_s=wait_s) for question in questions]


Asking = Callable[..., list[Answer]]
both = pytest.mark.parametrize(
    "ask",
    [pytest.param(ask_async, id="asyncio"), pytest.param(ask_blocking, id="blocking")],
)


def settings_of(url: str, **said: Any) -> ClientSettings:
    return ClientSettings(**{"when_away": "closed", "timeout_s": PATIENT_S, "url": url, **said})


@both
def test_it_is_granted_refused_or_at_fault(ask: Asking, running: RunningDaemon) -> None:
    settings, slow = settings_of(running.url), ask.__name__
    large = Question(Name(group=slow), 900)
    granted, _, refused = ask(settings, Question(ORDERS, 5), large, large)

    assert (granted.granted, granted.messages, granted.source) == (True, 5, Source.DAEMON)
    # A full bucket grants one large request and leaves debt: the next one is refused.
    assert (refused.granted, refused.limited_by, refused.group) == (False, "resource_group", slow)
    with pytest.raises(QuestionRefused, match="404"):
        ask(settings, Question(Name(group="nobody")))
    wrong: dict[str, Any]
    for wrong in ({"messages": -1}, {"attempt": 0}, {"attempt": 1.0}, {"partial": 1}):
        with pytest.raises(BadSetting, match=next(iter(wrong))):
            ask(settings, Question(ORDERS, **wrong))


def test_one_bad_name_of_several_leaves_no_grant_that_nobody_gets(running: RunningDaemon) -> None:
    questions = [Question(ORDERS), Question(Name(group="\udcff"))]

    async def ask() -> None:
        async with Client(settings_of(running.url)) as client:
            with pytest.raises(BadSetting, match="UTF-8"):
                await client.ask_all(questions)
            assert client.count().asked == 0

    asyncio.run(ask())
    with BlockingClient(settings_of(running.url)) as client:
        with pytest.raises(BadSetting, match="UTF-8"):
            client.ask_all(questions)
        assert client.count().asked == 0


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(settings_of("http://x", token="secret"))


@both
def test_who_waits_is_granted_at_a_later_attempt(ask: Asking, tmp_path: Path) -> None:
    with running_daemon(tmp_path, policies()) as running:
        slow = Question(Name(group=ask.__name__), 25)
        answers = ask(settings_of(running.url), slow, slow, slow, wait_s=PATIENT_S)

    assert [answer.granted for answer in answers] == [True] * 3


@both
@pytest.mark.parametrize(("when_away", "granted"), [("open", True), ("closed", False)])
def test_without_a_daemon_it_answers_as_told(ask: Asking, when_away: str, granted: bool) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        settings = settings_of(url, when_away=when_away, timeout_s=0.05)
        answers = ask(settings, *[Question(ORDERS)] * 20)

    assert {(answer.granted, answer.source) for answer in answers} == {(granted, Source.AWAY)}


def test_it_is_back_when_the_daemon_is(tmp_path: Path) -> None:
    path = tmp_path / "rgd.sock"
    settings = settings_of(f"unix://{path}", retry_first_s=0.001, retry_max_s=0.01, timeout_s=0.2)
    with BlockingClient(settings) as client:
        assert client.ask(Question(ORDERS)).source is Source.AWAY
        for run in ("first", "second"):
            with running_daemon(tmp_path / run, policies(), unix_socket=path):
                while client.ask(Question(ORDERS)).source is Source.AWAY:
                    pass
            while client.ask(Question(ORDERS)).source is Source.DAEMON:
                pass


def test_what_threads_ask_at_the_same_moment_travels_together(running: RunningDaemon) -> None:
    threads, each = 16, 40
    with BlockingClient(settings_of(running.url, calls_max=1)) as client:
        asking = [
            threading.Thread(target=lambda: client.ask_all([Question(ORDERS)] * each))
            for _ in range(threads)
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        counts = client.count()

    assert (counts.asked, counts.by_daemon) == (threads * each, threads * each)
    assert counts.calls < threads * each / 4


@pytest.mark.parametrize("leased", [False, True])
async def test_who_leaves_in_the_turn_of_his_answer_gets_no_grant(
    leased: bool, running: RunningDaemon
) -> None:
    async with Client(settings_of(running.url)) as client:
        limiter = client.limiter(ORDERS, leased=leased)
        asking = asyncio.ensure_future(limiter.acquire(7))
        # Its first step asks, and waits.
        await asyncio.sleep(0)
        ticket = client._core._deadlines[0][2]
        told = ticket.on_answer

        def tell_and_cancel(answer: Answer) -> None:
            told(answer)
            asking.cancel()

        ticket.on_answer = tell_and_cancel
        with pytest.raises(asyncio.CancelledError):
            await asking
        if leased:
            hold = limiter._hold
            assert hold is not None
            assert hold.left() == hold._granted
        else:
            await client.ask(Question(ORDERS))
            assert client.count().settled_messages == 7


async def test_a_closed_client_says_so(running: RunningDaemon) -> None:
    settings = settings_of(running.url)
    blocking, client = BlockingClient(settings), Client(settings)
    with blocking:
        blocking.limiter(ORDERS).acquire()
    with pytest.raises(ClientClosed):
        blocking.limiter(ORDERS).acquire()
    async with client:
        pass
    with pytest.raises(ClientClosed):
        await client.ask(Question(ORDERS))


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"when_away": "maybe"}, "when_away"),
        ({"url": "ftp://x"}, "url"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"batch_max": 0}, "batch_max"),
        ({"lease_ttl_s": 0.05}, "lease_ttl_s"),
        ({"lease_ttl_s": 120}, "lease_ttl_s"),
        ({"token": "a", "token_file": "b"}, "token"),
        *(({"token": wrong}, "token") for wrong in ("a\n", "a b", "", "\x00", "\xe9")),
        ({"tls_cert": "a"}, "tls_cert"),
        ({"retry_first_s": 3.0}, "retry_first_s"),
        ({"token_file": "nowhere/token"}, "token_file"),
        ({"tls_ca": "nowhere/ca.pem"}, "tls_ca"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_name(said: dict[str, Any], field: str) -> None:
    with pytest.raises(BadSetting, match=field):
        ask_blocking(ClientSettings(**{"when_away": "open", **said}), Question(ORDERS))


async def test_a_token_file_is_read_again_when_the_token_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    scopes = {"new": Scope.QUERY, "other": Scope.READ}
    known = Tokens({digest_of(token): frozenset({scope}) for token, scope in scopes.items()})
    with running_daemon(tmp_path, policies(), tokens=known) as running:
        async with Client(settings_of(running.url, token_file=file, batch_max=1)) as client:
            with pytest.raises(QuestionRefused, match="401"):
                await client.ask(Question(ORDERS))
            file.write_text("new\n")
            # Two calls at once: both are refused, and the first reads the file.
            answers = await client.ask_all([Question(ORDERS)] * 2)
            assert [answer.granted for answer in answers] == [True, True]
        async with Client(settings_of(running.url, token="other")) as client:
            with pytest.raises(QuestionRefused, match=r"401: .*scope"):
                await client.ask(Question(ORDERS))


async def test_tls_is_spoken_with_the_certificates_that_were_named(
    certificate: tuple[Path, Path],
) -> None:
    cert, key = certificate
    async with open_door(HttpSettings(port=0, tls_cert=cert, tls_key=key)) as door:
        url = f"https://127.0.0.1:{door.server.port}"
        async with Client(settings_of(url, tls_ca=cert)) as client:
            assert (await client.ask(Question(ORDERS))).source is Source.DAEMON
        async with Client(settings_of(url, timeout_s=0.05)) as client:
            assert (await client.ask(Question(ORDERS))).source is Source.AWAY
