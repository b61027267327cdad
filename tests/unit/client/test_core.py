"""The client's core: batches, deadlines, a daemon that is away, what goes back.

Not covered: leases (test_leases.py), and every order of events (tests/property/test_client.py).
"""

import random
from typing import Any

import msgspec
import pytest

from rgd.client.answers import Answer, Name, Question, Source
from rgd.client.core import Call, ClientCore
from rgd.client.errors import BadSetting
from rgd.client.settings import ClientSettings
from rgd.client.tickets import Ticket
from rgd.client.transport import NOTHING
from tests.unit.client.model_daemon import ModelDaemon

MS = 1_000_000
ORDERS = Name("acme", "orders", topic="eu")


class Asked:
    """A core, and the answers of its callers."""

    def __init__(self, **settings: Any) -> None:
        said = {"when_away": "closed", "timeout_s": 0.2, **settings}
        self.core = ClientCore(ClientSettings(**said), random.Random(1))
        self.daemon = ModelDaemon()
        self.answers: list[Answer] = []

    def ask(self, messages: int = 1, *, now: int = 0) -> Ticket | Answer:
        question = Question(ORDERS, messages)
        asked = self.core.ask(question, now, self.answers.append)
        if isinstance(asked, Answer):
            self.answers.append(asked)
        return asked

    def call(self, now: int = 0) -> Call:
        (call,) = self.core.calls(now)
        return call

    def grant(self, call: Call, now: int = 0) -> None:
        self.core.answered(call.id, *self.daemon.acquire(call), now)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def items(call: Call) -> Any:
    return msgspec.json.decode(call.body)


@pytest.mark.parametrize(
    "topic",
    ["\udcff", "half \ud83d", object(), b"eu"],
    ids=["no UTF-8", "half", "no text", "bytes"],
)
def test_a_name_that_no_json_can_say_is_refused_to_its_caller_alone(
    asked: Asked, topic: Any
) -> None:
    name = Name("acme", "orders", topic=topic)
    for wrong in (
        lambda: asked.core.ask(Question(name), 0, asked.answers.append),
        lambda: asked.core.settle(name, 1, 0),
        lambda: asked.core.leases.hold_of(name, 0),
    ):
        with pytest.raises(BadSetting, match="UTF-8"):
            wrong()
    asked.ask(1)
    asked.grant(asked.call())
    assert [answer.messages for answer in asked.answers] == [1]


def test_one_question_more_than_may_wait_is_answered_at_once() -> None:
    asked = Asked(waiting_max=1)
    asked.ask()
    asked.ask()

    assert [answer.source for answer in asked.answers] == [Source.AWAY]
    assert asked.core.count().overflowed == 1


def test_deadlines_of_answered_questions_do_not_pile_up_behind_one_that_waits() -> None:
    asked = Asked(waiting_max=3)
    asked.ask()
    asked.call()
    for _ in range(20):
        asked.ask()
        asked.grant(asked.call())
        assert len(asked.core._deadlines) <= 6  # noqa: SLF001 -- what bounds memory
    asked.core.expire(200 * MS)

    assert [answer.source for answer in asked.answers] == [Source.DAEMON] * 20 + [Source.AWAY]


def test_nobody_waits_for_a_daemon_that_is_away(asked: Asked) -> None:
    asked.ask()
    asked.core.answered(asked.call().id, *NOTHING, 0)
    asked.ask()

    (answer,) = asked.answers
    assert answer.source is Source.AWAY
    assert answer.retry_after_ms is not None


def test_a_call_that_fails_after_the_daemon_answered_another_says_nothing(asked: Asked) -> None:
    asked.ask()
    hung = asked.call(0)
    asked.ask(now=MS)
    asked.grant(asked.call(MS), 2 * MS)
    asked.core.answered(hung.id, *NOTHING, 3 * MS)

    assert asked.core.link.is_up


def test_calls_become_shorter_where_the_daemon_takes_shorter_ones(asked: Asked) -> None:
    for _ in range(5):
        asked.ask()
    asked.core.answered(asked.call().id, 413, b'{"reason":"too long"}', 0)

    lengths = []
    while calls := asked.core.calls(0):
        for call in calls:
            lengths.append(len(items(call)))
            asked.grant(call)
    assert lengths == [2, 2, 1]
    assert len(asked.answers) == 5


def test_what_goes_back_is_sent_again_where_the_daemon_takes_fewer_at_once(asked: Asked) -> None:
    for number in range(5):
        asked.core.settle(Name("acme", f"orders-{number}"), 1, 10)
    asked.core.answered(asked.call().id, 413, b'{"reason":"too long"}', 0)
    assert asked.core.count().settled_messages == 0
    lengths = []
    while calls := asked.core.calls(0):
        for call in calls:
            lengths.append(len(items(call)))
            asked.core.answered(call.id, *asked.daemon.settle(call), 0)
    assert lengths == [2, 2, 1]
    assert asked.daemon.settled == [5, 50]
    assert asked.core.count().settled_bytes == 50


def test_a_refused_token_is_everybodys_answer_and_no_outage(asked: Asked) -> None:
    asked.ask()
    asked.core.answered(asked.call().id, 401, b'{"reason":"no token"}', 0)

    (answer,) = asked.answers
    assert (answer.status, answer.reason) == (401, "no token")
    assert asked.core.link.is_up


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"granted":true}'])
def test_what_is_no_answer_is_an_outage(asked: Asked, body: bytes) -> None:
    asked.ask()
    asked.core.answered(asked.call().id, 200, body, 0)

    assert not asked.core.link.is_up


def test_what_goes_back_is_summed_by_name_and_bounded() -> None:
    asked = Asked(names_max=1)
    asked.core.settle(ORDERS, 1, 10)
    asked.core.settle(ORDERS, 2, 20)
    asked.core.settle(Name(group="gold"), 5, 0)

    (item,) = items(asked.call())
    assert (item["messages"], item["bytes"]) == (3, 30)
