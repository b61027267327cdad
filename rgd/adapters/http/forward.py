"""What the gate passes on to the plane, and what comes back.

Law: a request is passed on once it is whole, let pass and within its limits, and the plane answers it without
a further look at tokens, connections or sizes. What comes back is a `Reply`, or a `Stream` and then its messages.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple, Protocol

from rgd.adapters.http.reply import EVENT_STREAM, Reply


class Asked(NamedTuple):
    """A request that the gate does not answer itself, as plain data."""

    method: str
    #: The path as `plane` lists it.
    route: str
    #: The name of the token, for calls that change something.
    caller: str
    #: As of `reply.Call`; of the headers the only one that the plane looks at.
    path: Mapping[str, str]
    raw_path: str
    query: Sequence[tuple[str, str]]
    accept: str
    body: bytes


class Stream(NamedTuple):
    """The beginning of an answer that goes on in messages until one of both sides ends it."""

    headers: Mapping[str, str]
    content_type: str = EVENT_STREAM


#: What an answer comes in.
Pieces = AsyncGenerator[Reply | Stream | bytes]


class Forward(Protocol):
    """The way to the plane. Closing its pieces ends the work for them."""

    def __call__(self, asked: Asked) -> Pieces:
        """Answer a request; errors are answers, too.

        Raises:
            Overloaded: nobody is there to answer.
        """
