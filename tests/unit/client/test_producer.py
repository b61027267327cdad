"""The producer that asks: what was not sent goes back. Not covered: a real Pulsar (the examples' test)."""

from typing import Any

import pytest

from rgd.client.answers import Answer
from rgd.client.producer import AskingProducer, Limited


class Result:
    """As a value of `pulsar.Result`."""

    def __init__(self, name: str) -> None:
        self.name = name


class FakePulsar:
    """A producer whose sends end as the test says: the broker's answer is the one thing not real here."""

    def __init__(self, result: str) -> None:
        self.result = result
        self.sent: list[bytes] = []

    def send(self, content: bytes, **options: Any) -> str:
        if self.result != "Ok":
            raise OSError(self.result)
        self.sent.append(content)
        return "id"

    def send_async(self, content: bytes, callback: Any, **options: Any) -> None:
        if self.result == "closed":
            raise OSError(self.result)
        self.sent.append(content)
        callback(Result(self.result), "id")


class Limiter:
    """Grants or refuses, and notes what goes back."""

    def __init__(self, *, granted: bool = True) -> None:
        self.granted = granted
        self.asked: list[tuple[int, int]] = []
        self.settled: list[Answer] = []

    def acquire(self, messages: int, size: int, *, wait_s: float) -> Answer:
        self.asked.append((messages, size))
        return Answer(granted=self.granted, limited_by="topic", retry_after_ms=7)

    def settle(self, answer: Answer) -> None:
        self.settled.append(answer)


def producer_of(pulsar: FakePulsar, limiter: Limiter) -> AskingProducer:
    return AskingProducer(pulsar, limiter)  # type: ignore[arg-type]  # what it uses of one


@pytest.mark.parametrize("way", ["send", "send_async"])
@pytest.mark.parametrize("result", ["Ok", "Timeout", "closed"])
def test_what_was_not_sent_goes_back(way: str, result: str) -> None:
    pulsar, limiter = FakePulsar(result), Limiter()
    told: list[str] = []
    try:
        if way == "send":
            producer_of(pulsar, limiter).send(b"four")
        else:
            producer_of(pulsar, limiter).send_async(b"four", lambda got, _: told.append(got.name))
    except OSError as error:
        told.append(str(error))

    assert limiter.asked == [(1, 4)]
    assert len(limiter.settled) == (result != "Ok")
    assert told == ([] if (way, result) == ("send", "Ok") else [result])


@pytest.mark.parametrize(("way", "callback"), [("send", ()), ("send_async", (print,))])
def test_what_is_refused_is_not_sent(way: str, callback: tuple[Any, ...]) -> None:
    pulsar, limiter = FakePulsar("Ok"), Limiter(granted=False)
    with pytest.raises(Limited, match="refused by topic; retry after 7 ms"):
        getattr(producer_of(pulsar, limiter), way)(b"x", *callback)
    assert pulsar.sent == []
    assert limiter.settled == []
