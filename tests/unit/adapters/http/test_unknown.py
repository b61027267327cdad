"""What the door says while no policies are known: 503 and when to come back, alone and in an array."""

import msgspec
import pytest

from rgd.adapters.http.acquire import Acquire
from rgd.adapters.http.reply import Call, Reply
from rgd.adapters.http.settings import HttpSettings
from rgd.core.policies.model import OnUnknown
from tests.unit.adapters.http.small_daemon import SmallDaemon, reply_of

ORDERS = {"tenant": "acme", "namespace": "orders"}


@pytest.fixture
def daemon() -> SmallDaemon:
    daemon = SmallDaemon()
    daemon.limiter.unknown = OnUnknown.DENY
    return daemon


async def ask(daemon: SmallDaemon, body: object) -> Reply:
    return await reply_of(
        Acquire(daemon, HttpSettings()).answer(Call({}, {}, msgspec.json.encode(body)))
    )


async def test_one_question_is_refused_with_503_a_reason_and_a_retry(daemon: SmallDaemon) -> None:
    reply = await ask(daemon, ORDERS)
    assert reply.status == 503
    assert reply.headers["Retry-After"] == "1"
    assert msgspec.json.decode(reply.body) == {
        "granted": False,
        "messages": 0,
        "bytes": 0,
        "reason": "no policies are known yet: the daemon has not read them (policies.unknown is deny)",
        "retry_after_ms": 1000,
    }


async def test_an_item_of_an_array_carries_the_status_and_the_same_fields(
    daemon: SmallDaemon,
) -> None:
    reply = await ask(daemon, [ORDERS, {"group": "gold"}, {"tenant": "acme"}])
    assert reply.status == 200
    first, second, faulty = msgspec.json.decode(reply.body)
    assert first == second
    assert first["status"] == 503
    assert first["retry_after_ms"] == 1000
    assert (first["granted"], first["messages"], first["bytes"]) == (False, 0, 0)
    assert faulty["status"] == 400
