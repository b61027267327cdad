"""ASGI middleware (Starlette, FastAPI, Django, Quart): asks before a request reaches the application.

A refused request never reaches it; `web_answers` says what is answered. What is no HTTP request (lifespan, websocket)
passes. It imports no framework.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from rgd.client.answers import Answer
from rgd.client.client import Limiter
from rgd.client.web_answers import ask, refusal

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class LimitedApp:
    """An application whose requests are limited: one message each, of the size of its body.

    Args:
        app: the application.
        limiter_of: who is asked for a request, by its scope; None: it is not limited.
        wait_s: how long a request waits for its turn before it is refused.
    """

    def __init__(
        self, app: App, limiter_of: Callable[[Scope], Limiter | None], *, wait_s: float = 0.0
    ) -> None:
        self._app = app
        self._limiter_of = limiter_of
        self._wait_s = wait_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limiter = self._limiter_of(scope) if scope["type"] == "http" else None
        if limiter is not None:
            size = dict(scope["headers"]).get(b"content-length", b"")
            answer = await ask(limiter, size, self._wait_s)
            if not answer.granted:
                await _refuse(send, answer)
                return
        await self._app(scope, receive, send)


async def _refuse(send: Send, answer: Answer) -> None:
    status, headers, body = refusal(answer)
    written = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": written})
    await send({"type": "http.response.body", "body": body})
