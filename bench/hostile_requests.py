"""Malformed requests by the hundred thousand: whether the daemon goes on answering, and what its memory does.

    python bench/hostile_requests.py [--json] [--requests 100000] [--seed 1]

The daemon is `rgd serve` on the embedded broker, with short timeouts. `CALLERS` connections at once send what no
client would: sound requests with bytes changed, missing or doubled, framing with two meanings, headers without end,
bodies of every wrong kind, and bytes that are no HTTP. After each thousand a sound question has to be answered.
Memory is the resident set: after a fifth of the requests, when every table and buffer exists, and at the end.
"""

import argparse
import asyncio
import contextlib
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.harness import Figures, run
from bench.quota_plane import Server, start_daemon, until_ready
from rgd.adapters.exchange.embedded import EmbeddedBroker

CALLERS: Final = 48
#: Requests that are sent before the memory counts, as a part of all.
WARM_PART: Final = 0.2
#: How long a caller waits for an answer that need not come.
PATIENCE_S: Final = 1.0
READ_BYTES: Final = 1 << 16

#: So that what never comes is soon given up.
TIMEOUTS: Final = {"RGD_HTTP__REQUEST_TIMEOUT_MS": "150", "RGD_HTTP__IDLE_TIMEOUT_MS": "300"}

PATHS: Final = (
    "/v1/acquire",
    "/v1/settle",
    "/v1/leases",
    "/v1/check",
    "/v1/groups",
    "/metrics",
    "/",
)
FRAMING: Final = (
    b"Content-Length: 16\r\nContent-Length: 17\r\n",
    b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    b"Transfer-Encoding: xchunked\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 0x10\r\n",
    b"Content-Length: 99999999999999999999999\r\n",
    b"Content-Length : 2\r\n",
    b"X: a\r\n b\r\nContent-Length: 2\r\n",
    b"X: a\nContent-Length: 2\r\n",
    b"X: \x00\r\nContent-Length: 2\r\n",
    b"Expect: tea\r\nContent-Length: 2\r\n",
    b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 2\r\n",
    b"Authorization: Bearer \xff\xfe\r\nContent-Length: 2\r\n",
)
VALUES: Final[tuple[object, ...]] = (
    None,
    True,
    -1,
    1.5,
    1 << 70,
    "",
    "x" * 300,
    [],
    {},
    [[[]]],
    {"a": 1},
    "\ud7ff\x00",
)
FIELDS: Final = (
    "tenant", "namespace", "group", "topic", "subscription", "kind", "messages", "bytes", "partial",
    "attempt", "held_messages", "held_bytes", "other",
)  # fmt: skip


def post(path: str, body: bytes, framing: bytes | None = None) -> bytes:
    """A request with a body, its length right unless `framing` says otherwise."""
    length = b"Content-Length: %d\r\n" % len(body) if framing is None else framing
    return b"POST %b HTTP/1.1\r\nHost: x\r\n%b\r\n%b" % (path.encode(), length, body)


def hostile(dice: random.Random) -> bytes:
    """One request that is wrong in some way, or that only looks so."""
    return dice.choice((_noise, _damaged, _wrong_body, _wrong_framing, _endless))(dice)


def _noise(dice: random.Random) -> bytes:
    return dice.randbytes(dice.randrange(1, 400)) + dice.choice((b"", b"\r\n\r\n"))


def _sound(dice: random.Random) -> bytes:
    body = dice.choice(
        (b'{"group":"gold"}', b"[%b]" % b",".join([b'{"group":"gold"}'] * 40), b"{}")
    )
    return post(dice.choice(PATHS), body)


def _damaged(dice: random.Random) -> bytes:
    request = bytearray(_sound(dice))
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(len(request))
        how = dice.randrange(3)
        request[at : at + (how < 2)] = dice.randbytes(how and dice.randrange(1, 3))
        if not request:
            break
    return bytes(request)


def _wrong_body(dice: random.Random) -> bytes:
    def item() -> object:
        return {name: dice.choice(VALUES) for name in dice.sample(FIELDS, dice.randrange(5))}

    body: object = dice.choice(
        (item(), [item() for _ in range(dice.randrange(60))], dice.choice(VALUES))
    )
    written = json.dumps(body).encode()
    written = dice.choice((written, written[: dice.randrange(1, len(written) + 1)], b"[" * 5000))
    return post(dice.choice(PATHS), written)


def _wrong_framing(dice: random.Random) -> bytes:
    return post(
        dice.choice(PATHS), dice.choice((b"{}", b"0\r\n\r\n", b"f" * 40)), dice.choice(FRAMING)
    )


def _endless(dice: random.Random) -> bytes:
    padding = dice.choice(
        (b"X: y\r\n" * 400, b"X-%b: y\r\n" % (b"z" * 9000), b"X: %b\r\n" % (b"z" * 9000))
    )
    return b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\n" + padding + b"\r\n"


async def send(port: int, requests: list[bytes], answers: Counter[str]) -> None:
    """Send requests on one connection and read what comes; answers are counted by their class."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        answers["refused"] += 1
        return
    got = bytearray()
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(PATIENCE_S):
            writer.writelines(requests)
            await writer.drain()
            while data := await reader.read(READ_BYTES):
                got += data
    writer.transport.abort()
    answers.update(f"{found.decode()}xx" for found in re.findall(rb"HTTP/1\.[01] (\d)\d\d ", got))


async def is_answering(port: int) -> bool:
    """Whether a sound question is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(post("/v1/acquire", b'{"group":"gold"}'))
    async with asyncio.timeout(30):
        head = await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()
    return head.startswith(b"HTTP/1.1 200")


async def attack(server: Server, count: int, seed: int) -> dict[str, float]:
    """Send so many; the figures."""
    dice = random.Random(seed)
    answers: Counter[str] = Counter()
    begun, sent, warm_mb = time.perf_counter(), 0, 0.0
    while sent < count:
        batches = [[hostile(dice) for _ in range(dice.randrange(1, 5))] for _ in range(CALLERS)]
        await asyncio.gather(*(send(server.port, batch, answers) for batch in batches))
        before, sent = sent, sent + sum(map(len, batches))
        if before // 1000 != sent // 1000:
            if not await is_answering(server.port):
                raise SystemExit(f"no answer after {sent} requests")
            if before < count * WARM_PART <= sent or not warm_mb:
                warm_mb = server.rss_mb()
            print(f"{sent} requests, {server.rss_mb():.1f} MB", end="\r", file=sys.stderr)
    return {
        "requests": sent,
        "seconds": round(time.perf_counter() - begun, 1),
        **{f"answers_{kind}": number for kind, number in sorted(answers.items())},
        "rss_warm_mb": round(warm_mb, 1),
        "rss_end_mb": round(server.rss_mb(), 1),
    }


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = EmbeddedBroker(folder / "broker")
        url = asyncio.run(broker.ensure())
        stack.callback(lambda: asyncio.run(broker.stop()))
        server = start_daemon("lane", folder, url, stack, TIMEOUTS, tokens="")
        until_ready(server)
        return asyncio.run(attack(server, options.requests, options.seed))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--requests", type=int, default=100_000, help="how many are sent")
    parser.add_argument("--seed", type=int, default=1, help="of the requests")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
