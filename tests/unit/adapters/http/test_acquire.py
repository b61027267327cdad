"""`POST /v1/acquire` without HTTP: names, defaults, arrays and their faults.

Decisions are the real limiter's. Not covered: status lines and headers (tests/integration/http).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from rgd.adapters.http.acquire import Acquire, request_of
from rgd.adapters.http.bodies import AcquireBody
from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.reply import Call
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.strict import BodyDecoder
from rgd.adapters.http.turns import SHORT_BYTES, SLICE_WORK
from rgd.core.buckets.decision import Request
from rgd.core.errors import InvalidName, InvariantBroken
from rgd.core.units import Kind, Pair
from tests.unit.adapters.http.small_daemon import SmallDaemon, reply_of

EU = "persistent://acme/orders/eu"
ORDERS = {"tenant": "acme", "namespace": "orders"}

decoder = BodyDecoder(AcquireBody)


def request(**fields: object) -> Request:
    return request_of(decoder.decode(msgspec.json.encode(fields)))


@pytest.fixture
def daemon() -> SmallDaemon:
    return SmallDaemon()


@pytest.fixture
def acquire(daemon: SmallDaemon) -> Acquire:
    return Acquire(daemon, HttpSettings(batch_max=1000))


async def ask(acquire: Acquire, body: object) -> Any:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    reply = await reply_of(acquire.answer(Call({}, {}, raw)))
    assert reply.status == 200
    assert "Retry-After" not in reply.headers
    return msgspec.json.decode(reply.body)


# --- names and defaults --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        {**ORDERS, "topic": "eu"},
        {**ORDERS, "topic": EU},
        {"tenant": "acme", "namespace": "acme/orders", "topic": "eu"},
    ],
)
def test_local_and_full_names_are_one_topic(names: Mapping[str, str]) -> None:
    asked = request(**names, subscription="billing")

    assert (asked.namespace, asked.topic, asked.subscription) == ("acme/orders", EU, "billing")


@pytest.mark.parametrize(
    ("kind", "said", "partial"),
    [
        ("publish", {}, False),
        ("dispatch", {}, True),
        ("publish", {"partial": True}, True),
        ("dispatch", {"partial": False}, False),
    ],
)
def test_a_part_is_welcome_where_it_is_said_or_a_dispatcher_reads(
    kind: str, said: Mapping[str, bool], partial: bool
) -> None:
    asked = request(**ORDERS, kind=kind, **said)

    assert (asked.kind, asked.partial) == (Kind(kind), partial)


def test_amounts_attempt_and_what_is_held_are_passed_on() -> None:
    asked = request(**ORDERS, messages=0, bytes=9, attempt=3, held_messages=4, held_bytes=5)

    assert (asked.messages, asked.bytes, asked.attempt, asked.held) == (0, 9, 3, Pair(4, 5))


@pytest.mark.parametrize(
    ("names", "field"),
    [
        ({}, "tenant"),
        ({"tenant": "acme"}, "namespace"),
        ({"namespace": "orders"}, "tenant"),
        ({"topic": EU}, "tenant"),
        ({"group": "gold", "tenant": "acme"}, "group"),
        ({"group": "gold", **ORDERS}, "group"),
        ({"group": ""}, "group"),
        ({"group": "a b"}, "group"),
        ({"group": "gold", "topic": "eu"}, "topic"),
        ({"group": "gold", "subscription": "billing"}, "subscription"),
        ({**ORDERS, "subscription": "billing"}, "subscription"),
        ({**ORDERS, "topic": "eu", "subscription": ""}, "subscription"),
        ({**ORDERS, "topic": ""}, "topic"),
        ({**ORDERS, "topic": "persistent://acme/other/eu"}, "topic"),
        ({**ORDERS, "topic": "kafka://acme/orders/eu"}, "topic"),
        ({"tenant": "", "namespace": "orders"}, "tenant"),
        ({"tenant": "acme", "namespace": "other/orders"}, "namespace"),
        ({"tenant": "acme", "namespace": "a/b/c"}, "namespace"),
        ({"tenant": "acme", "namespace": "x" * 600}, "namespace"),
    ],
)
def test_names_that_say_nothing_or_contradict_are_refused_by_field(
    names: Mapping[str, str], field: str
) -> None:
    with pytest.raises((BadBody, InvalidName)) as caught:
        request(**names)

    assert str(caught.value).startswith(f"{field}: expected ")


# --- arrays --------------------------------------------------------------------------------------------


async def test_answers_come_in_order_with_faults_in_place(acquire: Acquire) -> None:
    answers = await ask(
        acquire,
        [
            {"group": "gold", "messages": 2},
            {"group": "gold", "messages": -2},
            {"group": "nobody"},
            {"tenant": "acme", "namespace": "trial", "messages": 401},
            {**ORDERS, "topik": "eu"},
            {**ORDERS, "bytes": 7},
        ],
    )

    assert [answer.get("status") for answer in answers] == [None, 400, 404, 413, 400, None]
    assert answers[0] == {"granted": True, "messages": 2, "bytes": 0}
    assert answers[5] == {"granted": True, "messages": 1, "bytes": 7}
    for fault in answers[1:5]:
        assert set(fault) == {"granted", "status", "reason"}
        assert fault["granted"] is False
    assert answers[1]["reason"].startswith("messages: expected an integer")
    assert "'nobody'" in answers[2]["reason"]
    assert "at most 400 at once" in answers[3]["reason"]


@pytest.mark.parametrize(
    "body",
    [
        b"[1]",
        b'[{"group":"gold"},null]',
        b"[[]]",
        b'[{"group":"gold"},]',
        b'[{"group":"gold"}',
        b"[" * 100_000,
        b'[{"messages":' + b"[" * 100_000,
        b"null",
        b'"gold"',
        b"7",
    ],
)
async def test_a_body_that_is_no_array_of_objects_is_refused_whole(
    acquire: Acquire, daemon: SmallDaemon, body: bytes
) -> None:
    with pytest.raises(BadBody, match=r"^body: expected"):
        await ask(acquire, body)
    assert daemon.asked == []


async def test_a_bug_is_not_told_as_a_fault_of_an_item(
    acquire: Acquire, daemon: SmallDaemon
) -> None:
    daemon.broken = InvariantBroken("tokens below debt")

    with pytest.raises(InvariantBroken):
        await ask(acquire, [{"group": "gold"}])


async def test_of_the_arrays_that_come_together_one_is_read_in_each_turn(
    acquire: Acquire, daemon: SmallDaemon
) -> None:
    count = SLICE_WORK // 2
    array = msgspec.json.encode([{"group": "idle"}] * count).ljust(SHORT_BYTES + 1)
    answers = [acquire.answer(Call({}, {}, array)) for _ in range(3)]
    assert len(daemon.asked) == count
    # Nobody waits for a turn who is answered as soon as a question.
    await reply_of(acquire.answer(Call({}, {}, b'[{"group":"gold"}]')))
    assert daemon.asked[-1].group == "gold"
    for answer in answers:
        assert len(msgspec.json.decode((await reply_of(answer)).body)) == count
