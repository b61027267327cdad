"""Requests whose end two readers may see in two places: none is answered as if it were sound."""

import asyncio

from tests.integration.http.door import Door, read_answer
from tests.support.cases import cases

BODY = b'{"group":"gold"}'
#: Would be answered as a request of its own by whoever took it for the next one.
HIDDEN = b"DELETE /v1/groups/idle HTTP/1.1\r\nHost: x\r\n\r\n"


@cases(
    "rest",
    {
        "two lengths": (b"Content-Length: 16\r\nContent-Length: 17\r\n\r\n" + BODY,),
        "twice the same": (b"Content-Length: 16\r\nContent-Length: 16\r\n\r\n" + BODY,),
        "list of lengths": (b"Content-Length: 16, 16\r\n\r\n" + BODY,),
        "plus": (b"Content-Length: +16\r\n\r\n" + BODY,),
        "minus": (b"Content-Length: -1\r\n\r\n" + BODY,),
        "hexadecimal": (b"Content-Length: 0x10\r\n\r\n" + BODY,),
        "underscore": (b"Content-Length: 1_6\r\n\r\n" + BODY,),
        "overflow": (b"Content-Length: " + b"9" * 30 + b"\r\n\r\n" + BODY,),
        "both": (b"Transfer-Encoding: chunked\r\nContent-Length: 16\r\n\r\n0\r\n\r\n",),
        "chunked twice": (
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        "identity": (b"Transfer-Encoding: identity\r\n\r\n" + BODY,),
        "nearly chunked": (b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",),
        "not last": (b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",),
        "gzip": (b"Transfer-Encoding: gzip, chunked\r\n\r\n10\r\n" + BODY + b"\r\n0\r\n\r\n",),
        "space before the colon": (b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",),
        "folded": (b"X: a\r\n b\r\nContent-Length: 16\r\n\r\n" + BODY,),
        "bare LF": (b"X: a\nContent-Length: 16\r\n\r\n" + BODY,),
        "bare CR": (b"X: a\rY: b\r\nContent-Length: 16\r\n\r\n" + BODY,),
        "NUL": (b"X: a\x00\r\nContent-Length: 16\r\n\r\n" + BODY,),
        "long chunk": (b"Transfer-Encoding: chunked\r\n\r\n10\r\n" + BODY + b"XX\r\n0\r\n\r\n",),
    },
)
async def test_a_request_without_one_clear_end_is_400_and_ends_its_connection(
    door: Door, rest: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    writer.write(b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\n" + rest + HIDDEN)
    async with asyncio.timeout(60):
        answer = await read_answer(reader)
        left = await reader.read()
    writer.close()

    assert answer.status == 400
    assert answer.reason
    assert left == b""
    assert door.daemon.asked == []
    assert "idle" in door.daemon.snapshot().groups


async def test_a_length_with_thousands_of_zeros_before_it_is_a_length(door: Door) -> None:
    length = b"Content-Length: " + b"0" * 5000 + b"16"
    answer = await door.raw(
        b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        + length
        + b"\r\n\r\n"
        + BODY
    )
    assert answer.status == 200


async def test_chunks_in_a_version_that_has_none_are_400(door: Door) -> None:
    head = b"POST /v1/acquire HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await door.raw(head + b"10\r\n" + BODY + b"\r\n0\r\n\r\n")
    assert (answer.status, door.daemon.asked) == (400, [])
