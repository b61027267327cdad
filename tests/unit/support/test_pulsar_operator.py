"""Pulsar is asked again where it cannot answer yet, and its refusals fail the test. Not covered: a real Pulsar."""

import io
import urllib.error
import urllib.request
from collections.abc import Sequence
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import pulsar_operator
from tests.support.pulsar_operator import Operator

PATH = "namespaces/acme/orders"
FIRST, FURTHER = "http://first:1", "http://further:2"
#: A broker that does not answer in time.
NONE = 0
DONE = 200


class Brokers:
    """Stands in for urllib's opener: gives these answers, and notes who was asked."""

    def __init__(self, answers: Sequence[tuple[int, bytes]]) -> None:
        self._answers = iter(answers)
        self.asked: list[str] = []

    def open(self, request: urllib.request.Request, timeout: float) -> io.BytesIO:
        assert timeout > 0
        self.asked.append(request.full_url.removesuffix(f"/admin/v2/{PATH}"))
        status, body = next(self._answers)
        if status == NONE:
            raise TimeoutError
        if status != DONE:
            raise urllib.error.HTTPError(request.full_url, status, "", Message(), io.BytesIO(body))
        return io.BytesIO(body)


def ask(monkeypatch: pytest.MonkeyPatch, method: str, *answers: tuple[int, bytes]) -> list[str]:
    """Who was asked until there was an answer."""
    brokers = Brokers(answers)
    monkeypatch.setattr(pulsar_operator, "_http", brokers)
    apache: Any = SimpleNamespace(admin_url=FIRST)
    Operator(apache, FURTHER).ask(method, PATH)
    return brokers.asked


@pytest.mark.parametrize(
    ("method", "status", "reason"),
    [
        pytest.param("PUT", 503, b"", id="no owner yet"),
        pytest.param("GET", 412, b"Please redo the lookup.", id="between two brokers"),
        pytest.param("DELETE", 412, b"being deleted", id="not empty yet"),
        pytest.param("DELETE", 409, b"being deleted", id="not empty yet either"),
    ],
)
def test_what_a_broker_cannot_answer_yet_the_next_one_is_asked(
    monkeypatch: pytest.MonkeyPatch, method: str, status: int, reason: bytes
) -> None:
    assert ask(monkeypatch, method, (status, reason), (DONE, b"")) == [FIRST, FURTHER]


@pytest.mark.parametrize(("method", "status"), [("PUT", 409), ("PUT", 412), ("DELETE", 404)])
def test_what_pulsar_refuses_is_raised_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, method: str, status: int
) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        ask(monkeypatch, method, (status, b"because"))
    assert raised.value.__notes__ == [f"{method} {PATH}: because"]


@pytest.mark.parametrize(("method", "status"), [("PUT", 409), ("DELETE", 404), ("PUT", DONE)])
def test_where_a_broker_never_answers_the_next_one_is_asked_and_may_find_it_done(
    monkeypatch: pytest.MonkeyPatch, method: str, status: int
) -> None:
    assert ask(monkeypatch, method, (NONE, b""), (status, b"there")) == [FIRST, FURTHER]
