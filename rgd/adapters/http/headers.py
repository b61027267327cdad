"""Which headers an answer has. The date and what becomes of the connection are added by `lane_answers`."""

from http import HTTPStatus
from typing import Final

from rgd.adapters.http.reply import Reply

#: What we say we are, without a version.
SERVER: Final = "rgd"

_REASONS: Final = {int(status): status.phrase for status in HTTPStatus}


def headers_of(reply: Reply) -> dict[str, str]:
    """The headers of a reply, in order."""
    told = {"Server": SERVER, **reply.headers}
    if reply.status != HTTPStatus.NO_CONTENT:
        told["Content-Type"] = reply.content_type
    return told


def head_of(reply: Reply, *, has_length: bool = True) -> bytes:
    """Status line, headers and the body's length, without the end of the last line."""
    lines = [f"HTTP/1.1 {reply.status} {_REASONS.get(reply.status, '')}"]
    lines += [f"{name}: {value}" for name, value in headers_of(reply).items()]
    if has_length and reply.status != HTTPStatus.NO_CONTENT:
        lines.append(f"Content-Length: {len(reply.body)}")
    # A line break in a header would begin another answer.
    assert not any("\r" in line or "\n" in line for line in lines), "headers are single lines"
    return "\r\n".join(lines).encode()
