"""A connection in every order of arrival, answer, timeout and end: what it held is given back."""

import asyncio
from collections.abc import Callable

from hypothesis import example, given, settings
from hypothesis import strategies as st

from rgd.adapters.http.byte_limits import FREE_BYTES
from tests.support.one_connection import MovedLoop, OneConnection

BODY = b"x" * (FREE_BYTES + (16 << 10))


def request(method: bytes, path: bytes, *, in_chunks: bool) -> bytes:
    head = b"%b %b HTTP/1.1\r\nHost: x\r\n" % (method, path)
    if in_chunks:
        chunk = b"%x\r\n%b\r\n" % (len(BODY), BODY)
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n"
    return head + b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


REQUESTS = [
    b"GET /read HTTP/1.1\r\nHost: x\r\n\r\n",
    *(
        request(*call, in_chunks=in_chunks)
        for call in (
            (b"POST", b"/at-once"), (b"POST", b"/later"), (b"GET", b"/read"), (b"POST", b"/read"),
            (b"POST", b"/stream"), (b"POST", b"/change"), (b"POST", b"/nowhere"),
        )
        for in_chunks in (True, False)
    ),
]  # fmt: skip

Step = Callable[[OneConnection], None]


def arrival(which: int, part: float) -> Step:
    sent = REQUESTS[which]
    return lambda world: world.receive(sent[: round(len(sent) * part)])


STEPS = st.one_of(
    st.builds(arrival, st.integers(0, len(REQUESTS) - 1), st.sampled_from([1.0, 1.0, 0.5, 0.0003])),
    st.sampled_from([
        OneConnection.answer, OneConnection.answer, OneConnection.end_of_input, OneConnection.pause, OneConnection.resume,
        lambda world: world.transport.close(),
        lambda world: world.lane.end_soon(),
        lambda world: world.lane.close_if_idle(),
    ]),
    st.builds(lambda seconds: lambda world: world.move(seconds), st.sampled_from([3, 11, 31, 80])),
)  # fmt: skip


async def held_after(steps: list[tuple[Step, int]]) -> tuple[int, int, int, int, int]:
    world = OneConnection()
    for step, turns in steps:
        step(world)
        for _ in range(turns):
            await asyncio.sleep(0)
    world.transport.close()
    for _ in range(20):
        await asyncio.sleep(0)
        world.answer()
    work = len(world.lanes._tasks)  # noqa: SLF001 -- nothing shows it
    faults = world.statuses.count(500)
    return world.bodies.used, world.limits.open, world.unread.total, work, faults


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(0, 3)), max_size=8))
# A read that has held a body, and one that was cancelled before its work began; a stream that ends.
@example([(arrival(5, 1.0), 2), (lambda world: world.transport.close(), 2)])
@example([(arrival(7, 1.0), 0), (lambda world: world.transport.close(), 2)])
@example(
    [(arrival(9, 1.0), 2), (OneConnection.answer, 0), (lambda world: world.transport.close(), 2)]
)
@example(
    [(arrival(9, 1.0), 2), (OneConnection.answer, 2), (lambda world: world.transport.close(), 2)]
)
def test_nothing_is_held_once_a_connection_is_gone_and_all_is_answered(
    steps: list[tuple[Step, int]],
) -> None:
    with asyncio.Runner(loop_factory=MovedLoop) as runner:
        assert runner.run(held_after(steps)) == (0, 0, 0, 0, 0)
