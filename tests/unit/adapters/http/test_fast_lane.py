"""How much a connection answers in one turn of the loop, how often it reads what has come, and what ends with it.

What it answers is in tests/integration/http/test_lane.py.
"""

import pytest

from rgd.adapters.http.chunks import CHUNKS_MAX
from rgd.adapters.http.connection import READ_AHEAD_BYTES
from rgd.adapters.http.fast_lane import PIPELINED_BYTES_MAX, PIPELINED_MAX
from rgd.adapters.http.lane_heads import HEAD_BYTES_MAX, check_begun
from rgd.adapters.http.tokens import EVERYTHING, Tokens
from rgd.ports.door import Scope, digest_of
from tests.support.one_connection import OneConnection
from tests.support.policy_tables import until

SHORT = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
LONG = b"GET /nowhere?%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a&" * 4000)
CHUNKED = (
    b"POST /at-once HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"1\r\na\r\n" * (CHUNKS_MAX - 1)
    + b"0\r\n\r\n"
)


@pytest.mark.parametrize(
    ("request_", "at_most"),
    [
        pytest.param(SHORT, PIPELINED_MAX, id="short"),
        pytest.param(LONG, PIPELINED_BYTES_MAX // len(LONG) + 1, id="long targets"),
        pytest.param(CHUNKED, PIPELINED_BYTES_MAX // len(CHUNKED) + 1, id="chunks"),
    ],
)
async def test_a_turn_ends_after_so_many_requests_or_so_many_bytes(
    request_: bytes, at_most: int
) -> None:
    one = OneConnection()
    one.receive(request_ * (PIPELINED_MAX + 1))
    assert len(one.statuses) == at_most


async def test_no_more_is_read_while_much_waits_for_its_turn() -> None:
    one = OneConnection()
    one.receive(SHORT * (READ_AHEAD_BYTES // len(SHORT) + PIPELINED_MAX + 1))
    assert not one.transport.reads
    await until(lambda: one.transport.reads)
    assert len(one.statuses) > PIPELINED_MAX


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each incomplete head that was looked at."""
    seen: list[int] = []

    def look(begun: bytes) -> None:
        seen.append(len(begun))
        check_begun(begun)

    monkeypatch.setattr("rgd.adapters.http.fast_lane.check_begun", look)
    return seen


async def test_a_head_that_trickles_is_read_when_it_begins_and_when_it_is_whole(
    looks: list[int],
) -> None:
    one = OneConnection()
    for byte in SHORT:
        one.receive(bytes([byte]))
    assert (looks, one.statuses) == ([1], [404])


async def test_a_head_that_does_not_end_is_refused(looks: list[int]) -> None:
    one = OneConnection()
    for _ in range(HEAD_BYTES_MAX // 1000 + 1):
        one.receive(b"GET / HTTP/1.1\r\n".ljust(1000, b"a") if not looks else b"a" * 1000)
    assert one.statuses == [431]


async def test_tokens_that_change_while_a_request_is_let_pass_count_from_the_next_one_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = OneConnection()
    gate, authorise = one.lanes.gate, one.lanes.gate.authorise

    def replaced_meanwhile(scope: Scope | None, *told: str) -> None:
        authorise(scope, *told)
        gate.tokens = Tokens({digest_of("another"): EVERYTHING})

    monkeypatch.setattr(gate, "authorise", replaced_meanwhile)
    one.receive(b"POST /at-once HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n" * 2)
    assert one.statuses == [200, 401]


@pytest.mark.parametrize("length", [b"0", b"1"], ids=["whole", "without its body"])
async def test_a_stream_ends_with_the_authority_that_let_it_in(length: bytes) -> None:
    one = OneConnection()
    one.receive(b"GET /stream HTTP/1.1\r\nHost: x\r\nContent-Length: %b\r\n\r\n" % length)
    for _ in ("head", "message"):
        await until(lambda: bool(one.waiting))
        one.answer()
    await until(lambda: bool(one.waiting))
    one.lane.end_soon()
    one.answer()
    await until(lambda: bool(one.waiting) or one.lane._work is None)
    assert not one.waiting
