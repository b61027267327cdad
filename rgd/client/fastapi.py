"""A dependency for FastAPI: asks before a path operation runs; a refused request is answered 429.

    @app.post("/orders", dependencies=[Depends(limited(limiter_of))])

To limit a whole application, `rgd.client.asgi` is in front of it and costs less.
"""

from collections.abc import Awaitable, Callable

from fastapi import HTTPException, Request

from rgd.client.client import Limiter
from rgd.client.web_answers import length_of, reason_of, wait_s_of


def limited(
    limiter_of: Callable[[Request], Limiter | None], *, wait_s: float = 0.0
) -> Callable[[Request], Awaitable[None]]:
    """Limit requests: one message each, of the size of its body.

    Args:
        limiter_of: who is asked for a request; None: it is not limited.
        wait_s: how long a request waits for its turn before it is refused.
    """

    async def dependency(request: Request) -> None:
        limiter = limiter_of(request)
        if limiter is not None:
            size = length_of(request.headers.get("Content-Length", ""))
            answer = await limiter.acquire(1, size, wait_s=wait_s)
            if not answer.granted:
                headers = {"Retry-After": str(wait_s_of(answer))}
                raise HTTPException(429, reason_of(answer), headers)

    return dependency
