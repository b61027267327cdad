"""Answers what the gate passes on: finds the call, waits for a turn, asks its handler.

Law: whatever a handler raises is an answer, as in `plane_errors`; but where a stream has begun, it ends.

`routes` lists the calls; what the gate has seen to already stands in `forward`.
"""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

from rgd.adapters.http.endpoint import Endpoint
from rgd.adapters.http.forward import Asked, Pieces, Stream
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.plane_errors import reply_to
from rgd.adapters.http.reply import EVENT_STREAM, reply_of
from rgd.adapters.http.turns import ReadTurns
from rgd.ports.door import CALLER, Scope

#: Proxies are asked to pass on each message at once.
_STREAM: Final = Stream({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


class Plane:
    """The calls that the gate does not answer itself.

    Args:
        endpoints: all calls; hot ones are not asked for here.
        gate: makes answers of errors.
        reads: the turns of calls of the scope `read`.
    """

    def __init__(self, endpoints: Iterable[Endpoint], gate: Gate, reads: ReadTurns) -> None:
        self._endpoints = {(endpoint.method, endpoint.path): endpoint for endpoint in endpoints}
        self._gate = gate
        self._reads = reads

    async def forward(self, asked: Asked) -> Pieces:
        """As `forward.Forward`."""
        method = "GET" if asked.method == "HEAD" else asked.method
        endpoint = self._endpoints[method, asked.route]
        has_begun = False
        try:
            if asked.caller:
                CALLER.set(asked.caller)
            if endpoint.stream is not None and _wants_stream(asked):
                async with endpoint.stream(asked.call) as messages:
                    has_begun = True
                    yield _STREAM
                    async for message in messages:
                        yield message
                return
            async with self._turn(endpoint):
                reply = await reply_of(endpoint.handler(asked.call))
        except Exception as exc:  # noqa: BLE001 -- the boundary: no request may end the process
            reply = self._gate.reply_to(exc, asked.method, asked.route, reply_to)
        if not has_begun:
            yield reply

    def _turn(self, endpoint: Endpoint) -> AbstractAsyncContextManager[Any]:
        if endpoint.scope is Scope.READ and not endpoint.is_probe:
            return self._reads.taken()
        return nullcontext()


def _wants_stream(asked: Asked) -> bool:
    return asked.method == "GET" and EVENT_STREAM in asked.call.headers.get("Accept", "")
