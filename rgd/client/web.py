"""Middleware for aiohttp's server: asks before a request reaches its handler; a refused one is answered 429."""

from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from rgd.client.client import Limiter
from rgd.client.web_answers import length_of, refusal


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
            size = length_of(request.headers.get("Content-Length", ""))
            answer = await limiter.acquire(1, size, wait_s=wait_s)
            if not answer.granted:
                headers, body = refusal(answer)
                return web.Response(status=429, headers=headers, body=body)
        return await handler(request)

    return middleware
