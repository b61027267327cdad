"""Requests whose end two readers may see in two places: none is answered as if it were sound."""

import asyncio

import pytest

from tests.integration.http.door import Door, read_answer

BODY = b'{"group":"gold"}'
#: Would be answered as a request of its own by whoever took it for the next one.
HIDDEN = b"DELETE /v1/groups/idle HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"Content-Length: 16\r\nContent-Length: 17\r\n\r\n" + BODY, id="two lengths"),
        pytest.param(
            b"Content-Length: 16\r\nContent-Length: 16\r\n\r\n" + BODY, id="twice the same"
        ),
        pytest.param(b"Content-Length: 16, 16\r\n\r\n" + BODY, id="list of lengths"),
        pytest.param(b"Content-Length: +16\r\n\r\n" + BODY, id="plus"),
        pytest.param(b"Content-Length: -1\r\n\r\n" + BODY, id="minus"),
        pytest.param(b"Content-Length: 0x10\r\n\r\n" + BODY, id="hexadecimal"),
        pytest.param(b"Content-Length: 1_6\r\n\r\n" + BODY, id="underscore"),
        pytest.param(b"Content-Length: " + b"9" * 30 + b"\r\n\r\n" + BODY, id="overflow"),
        pytest.param(
            b"Transfer-Encoding: chunked\r\nContent-Length: 16\r\n\r\n0\r\n\r\n", id="both"
        ),
        pytest.param(
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="chunked twice",
        ),
        pytest.param(b"Transfer-Encoding: identity\r\n\r\n" + BODY, id="identity"),
        pytest.param(b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", id="nearly chunked"),
        pytest.param(b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", id="not last"),
        pytest.param(
            b"Transfer-Encoding: gzip, chunked\r\n\r\n10\r\n" + BODY + b"\r\n0\r\n\r\n", id="gzip"
        ),
        pytest.param(b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", id="space before the colon"),
        pytest.param(b"X: a\r\n b\r\nContent-Length: 16\r\n\r\n" + BODY, id="folded"),
        pytest.param(b"X: a\nContent-Length: 16\r\n\r\n" + BODY, id="bare LF"),
        pytest.param(b"X: a\rY: b\r\nContent-Length: 16\r\n\r\n" + BODY, id="bare CR"),
        pytest.param(b"X: a\x00\r\nContent-Length: 16\r\n\r\n" + BODY, id="NUL"),
        pytest.param(
            b"Transfer-Encoding: chunked\r\n\r\n10\r\n" + BODY + b"XX\r\n0\r\n\r\n", id="long chunk"
        ),
    ],
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
