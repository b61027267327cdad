"""Bodies in chunks: what they are, and where they end, however the bytes come."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rgd.adapters.http.chunks import CHUNKS_MAX, FRAME_BYTES_MAX, ChunkedBody
from rgd.adapters.http.errors import BadBody, BodyTooLarge, CallError
from tests.support.work import calls_of

#: Parts with what a body ends with, too.
PARTS = st.lists(st.sampled_from([b"a", b"\r\n\r\n", b"0\r\n\r\n", b"\r\n", b"{}", b"x" * 300]))
TRAILERS = st.sampled_from([b"", b"A: b\r\n", b"A:\r\nB: c\r\n"])


def framed(parts: list[bytes], trailer: bytes = b"") -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return chunks + b"0\r\n" + trailer + b"\r\n"


@given(
    parts=PARTS,
    trailer=TRAILERS,
    behind=st.sampled_from([b"", b"\r\n", b"0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"]),
    piece=st.integers(1, 40),
)
@example(parts=[b"a\r\n\r"], trailer=b"", behind=b"\r\n\r\n", piece=1)
def test_a_body_is_what_its_chunks_hold_and_what_follows_is_not_read(
    parts: list[bytes], trailer: bytes, behind: bytes, piece: int
) -> None:
    sent = framed(parts, trailer) + behind
    chunked = ChunkedBody(1 << 20)
    begin, following = 0, None
    while following is None:
        following = chunked.take(sent[begin : begin + piece])
        begin += piece
    assert following + sent[begin:] == behind
    assert bytes(chunked.body) == b"".join(parts)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"zz\r\n", BadBody),
        (b"-1\r\n", BadBody),
        (b"0x2\r\nab\r\n", BadBody),
        (b"f" * 20 + b"\r\n", BadBody),
        (b"2\r\nabc\r\n0\r\n\r\n", BadBody),
        (b"2;a\nab\r\n0\r\n\r\n", BadBody),
        (b"0\r\nA b\r\n\r\n", BadBody),
        (b"2;" + b"a" * FRAME_BYTES_MAX, BadBody),
        (b"0\r\n" + b"A: b\r\n" * FRAME_BYTES_MAX, BadBody),
        (framed([b"x" * 9]), BodyTooLarge),
        (framed([b"x" * 5, b"y" * 5])[:-5], BodyTooLarge),
    ],
)
def test_what_is_no_body_or_too_large_is_an_error(sent: bytes, error: type[CallError]) -> None:
    with pytest.raises(error):
        ChunkedBody(8).take(sent)


def test_reading_costs_a_call_or_so_for_each_chunk_and_there_are_only_so_many() -> None:
    lines = framed([b"\r\n" * 50_000])
    assert calls_of(lambda: ChunkedBody(len(lines)).take(lines)) < 100
    ChunkedBody(CHUNKS_MAX).take(framed([b"x"] * (CHUNKS_MAX - 1)))
    with pytest.raises(BadBody, match=f"at most {CHUNKS_MAX} chunks"):
        ChunkedBody(CHUNKS_MAX).take(framed([b"x"] * CHUNKS_MAX))
