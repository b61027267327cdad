"""Middleware for aiohttp's server: asks before a request reaches its handler; `web_answers` answers a refused one."""

from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from rgd.client.client import Limiter
from rgd.client.web_answers import ask, refusal


def limited(
    limiter_of: Callable[[web.Request], Limiter | None], *, wait_s: float = 0.0
) -> Middleware:
    """Limit requests: one message each, of the size of its body.

    Args:
        limiter_of: who is asked for a request; None: it is not limited.
        wait_s: how long a request waits for its turn before it is refused.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        limiter = limiter_of(request)
        if limiter is not None:
            answer = await ask(limiter, request.headers.get("Content-Length", ""), wait_s)
            if not answer.granted:
                status, headers, body = refusal(answer)
                return web.Response(status=status, headers=headers, body=body)
        return await handler(request)

    return middleware
