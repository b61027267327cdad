"""A dependency for FastAPI: asks before a path operation runs; `web_answers` says what a refused request is answered.

    @app.post("/orders", dependencies=[Depends(limited(limiter_of))])

To limit a whole application, `rgd.client.asgi` is in front of it and costs less.
"""

from collections.abc import Awaitable, Callable

from fastapi import HTTPException, Request

from rgd.client.client import Limiter
from rgd.client.web_answers import ask, reason_of, refusal


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
            answer = await ask(limiter, request.headers.get("Content-Length", ""), wait_s)
            if not answer.granted:
                status, headers, _ = refusal(answer)
                raise HTTPException(status, reason_of(answer), headers)

    return dependency
