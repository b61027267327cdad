"""The leases of a client: taken ahead of need, renewed when used, given back when not, never needed.

Not covered: every order of events (tests/property/test_client.py).
"""

import random
from typing import Any

import msgspec
import pytest

from rgd.client.answers import Answer, Name, Question, Source
from rgd.client.core import Call, ClientCore
from rgd.client.hold import Demand, Hold
from rgd.client.settings import ClientSettings
from rgd.client.tickets import Ticket
from tests.unit.client.model_daemon import ModelDaemon

MS = 1_000_000
ORDERS = Name("acme", "orders")
TTL_MS = 1000


class Leased:
    """A client with one leased name."""

    def __init__(self, **settings: Any) -> None:
        said = {"when_away": "closed", **settings}
        self.core = ClientCore(ClientSettings(**said), random.Random(1))
        self.daemon = ModelDaemon()
        self.answers: list[Answer] = []
        hold = self.core.leases.hold_of(ORDERS, 0)
        assert hold is not None
        self.hold: Hold = hold

    def ask(self, messages: int = 1, size: int = 0, *, now: int = 0) -> None:
        if self.hold.take(messages, size, now):
            self.answers.append(Answer(granted=True, messages=messages, source=Source.LEASE))
            return
        question = Question(ORDERS, messages, size)
        asked = self.core.ask(question, now, self.answers.append, hold=self.hold)
        if not isinstance(asked, Ticket):
            self.answers.append(asked)

    def call(self, now: int = 0) -> Call:
        (call,) = self.core.calls(now)
        return call

    def fill(self, messages: int, size: int = 0, *, now: int = 0, cut: bool = False) -> Any:
        """Answer the one call that is due; what it said."""
        call = self.call(now)
        told = self.daemon.lease(call, messages, size, TTL_MS, now, cut=cut)
        self.core.answered(call.id, *told, now)
        return msgspec.json.decode(call.body)

    def grants(self) -> list[bool]:
        return [answer.granted for answer in self.answers]


@pytest.fixture
def leased() -> Leased:
    return Leased()


def test_the_first_question_takes_a_lease_and_is_served_from_it(leased: Leased) -> None:
    leased.ask(2)
    body = leased.fill(10)

    assert (body["tenant"], body["attempt"], body["ttl_ms"]) == ("acme", 1, 2000)
    assert body["wants_messages_per_s"] == pytest.approx(20)
    (answer,) = leased.answers
    assert (answer.granted, answer.messages, answer.source) == (True, 2, Source.LEASE)


def test_a_lease_that_was_used_is_renewed_at_its_refresh_time_and_given_back_when_not(
    leased: Leased,
) -> None:
    leased.ask()
    leased.fill(10)
    refresh_at = TTL_MS // 2 * MS
    assert leased.core.wake_at() == refresh_at
    leased.core.expire(refresh_at)
    assert leased.fill(0, now=refresh_at)["messages"] == 9
    leased.core.expire(2 * refresh_at)
    call = leased.call(2 * refresh_at)

    assert call.path == "/v1/leases/lease-1/release"
    assert msgspec.json.decode(call.body) == {"messages": 9, "bytes": 0}
    assert not leased.hold.take(1, 0, 2 * refresh_at)


def test_nothing_is_spent_after_the_expiry_which_counts_from_the_sending(leased: Leased) -> None:
    leased.ask()
    call = leased.call(0)
    told = leased.daemon.lease(call, 10, 0, TTL_MS, 100 * MS)
    leased.core.answered(call.id, *told, 100 * MS)

    assert leased.hold.serve(Question(ORDERS), TTL_MS * MS - 1)
    assert not leased.hold.serve(Question(ORDERS), TTL_MS * MS)


def test_who_is_left_over_is_refused_by_the_limit_that_cut_the_lease(leased: Leased) -> None:
    for _ in range(3):
        leased.ask()
    leased.fill(2, cut=True)

    assert leased.grants() == [True, True, False]
    refused = leased.answers[-1]
    assert (refused.limited_by, refused.group) == ("resource_group", "gold")
    assert refused.retry_after_ms == 40


def test_a_question_larger_than_the_lease_is_asked_by_itself(leased: Leased) -> None:
    leased.ask(50)
    leased.fill(10)
    call, *_ = leased.core.calls(0)

    assert call.path == "/v1/acquire"
    leased.core.answered(call.id, *leased.daemon.acquire(call), 0)
    assert [answer.source for answer in leased.answers] == [Source.DAEMON]


@pytest.mark.parametrize("status", [400, 404, 503])
def test_a_name_without_a_lease_is_asked_for_one_by_one(leased: Leased, status: int) -> None:
    leased.ask()
    leased.core.answered(leased.call().id, status, b'{"reason":"no"}', 0)
    leased.ask()

    assert [call.path for call in leased.core.calls(0)] == ["/v1/acquire"]
    assert leased.core.link.is_up


def test_a_lease_that_the_daemon_does_not_know_is_dropped(leased: Leased) -> None:
    leased.ask()
    leased.fill(10)
    leased.ask(5)
    leased.core.answered(leased.call().id, 404, b'{"reason":"no such lease"}', 0)

    assert leased.hold.left() == (0, 0)
    leased.ask()
    assert leased.call().path == "/v1/leases"


def test_a_dimension_without_a_limit_is_free_and_its_use_is_reported(leased: Leased) -> None:
    leased.ask()
    call = leased.call()
    status, body = leased.daemon.lease(call, 10, 0, TTL_MS, 0)
    told = msgspec.json.decode(body) | {"bytes": None}
    leased.core.answered(call.id, status, msgspec.json.encode(told), 0)
    leased.ask(4, 5000)
    assert leased.grants() == [True, True]

    leased.ask(1)
    body = leased.fill(0, 100)
    assert (body["messages"], body["bytes"]) == (4, 0)
    assert body["wants_bytes_per_s"] == pytest.approx(50_000)
    assert leased.hold.left() == (4, 100)


def test_under_overload_a_caller_hears_of_the_limit_and_so_do_those_after_it(
    leased: Leased,
) -> None:
    leased.ask(50)
    for _ in range(2):
        call = leased.call()
        told = leased.daemon.lease(call, 1, 0, TTL_MS, 0, limited=True)
        leased.core.answered(call.id, *told, 0)
    call = leased.core.calls(0)[0]
    assert call.path == "/v1/acquire"
    leased.core.answered(call.id, *leased.daemon.acquire(call, granted=False), 0)
    leased.ask(50, now=10 * MS)

    assert leased.grants() == [False, False]
    assert [answer.source for answer in leased.answers] == [Source.DAEMON, Source.LEASE]
    assert leased.answers[-1].retry_after_ms == 40


def test_closing_gives_everything_back(leased: Leased) -> None:
    leased.ask()
    leased.fill(10)
    (call,) = leased.core.give_back(MS)

    assert call.path == "/v1/leases/lease-1/release"
    assert msgspec.json.decode(call.body) == {"messages": 9, "bytes": 0}


@pytest.mark.parametrize("renewal", [None, 401, 503])
def test_names_with_leases_are_bounded_and_idle_ones_make_room(renewal: int | None) -> None:
    leased = Leased(names_max=1)
    if renewal is not None:
        # Its lease expires unrenewed.
        leased.ask()
        leased.fill(10)
        leased.core.expire(TTL_MS // 2 * MS)
        leased.core.answered(leased.call(TTL_MS // 2 * MS).id, renewal, b"", TTL_MS // 2 * MS)
    other = Name(group="gold")
    assert leased.core.leases.hold_of(other, 0) is None
    hold = leased.core.leases.hold_of(other, 2000 * MS)
    assert hold is not None
    # The forgotten one is asked for one by one.
    leased.ask(now=2000 * MS)
    assert [call.path for call in leased.core.calls(2000 * MS)] == ["/v1/acquire"]


def test_what_goes_back_of_an_earlier_time_makes_no_demand_below_nothing() -> None:
    demand = Demand(0, asked=-99, rate=50.0)
    assert demand.measure(0, 1000 * MS) == 0


def test_a_child_process_holds_nothing(leased: Leased) -> None:
    leased.ask()
    leased.fill(10)
    leased.core.leases.disown(MS)

    assert not leased.hold.take(1, 0, MS)
    assert leased.core.give_back(MS) == []
