"""Whether a broker is looked for rightly: who answers, who does not, and what is left to the client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rgd.adapters.exchange.probe import answers

#: Nothing here takes it; only who does not answer is waited for.
LONG_S = 30.0


@asynccontextmanager
async def server(answer: bytes | None) -> AsyncIterator[str]:
    """Where somebody listens who answers a first word, or None: who never does."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read(64)
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    listening.close()


async def test_one_of_several_is_enough() -> None:
    async with server(None) as silent, server(b"?") as good:
        assert await answers(f"pulsar://{silent},127.0.0.1:1,{good}", LONG_S)


async def test_over_tls_a_bad_handshake_is_an_answer() -> None:
    async with server(b"this is no TLS") as place:
        assert await answers(f"pulsar+ssl://{place}", LONG_S)


@pytest.mark.parametrize("url", ["kafka://h:1", "h:1", "pulsar://h:99999", "pulsar://[::1"])
async def test_what_is_no_url_is_left_to_the_client(url: str) -> None:
    assert await answers(url, LONG_S)
