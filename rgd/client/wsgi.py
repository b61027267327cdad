"""WSGI middleware (Flask, Django, Bottle): asks before a request reaches the application.

A refused request never reaches it; `web_answers` says what is answered. It imports no framework. Any number of
threads of a server may use it; a server that forks opens a client in each process.
"""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication

from rgd.client.blocking import BlockingLimiter
from rgd.client.web_answers import ask_blocking, refusal

Environ = dict[str, Any]


class LimitedApp:
    """An application whose requests are limited: one message each, of the size of its body.

    Args:
        app: the application.
        limiter_of: who is asked for a request, by its environ; None: it is not limited.
        wait_s: how long a request waits for its turn, and keeps its thread, before it is refused.
    """

    def __init__(
        self,
        app: WSGIApplication,
        limiter_of: Callable[[Environ], BlockingLimiter | None],
        *,
        wait_s: float = 0.0,
    ) -> None:
        self._app = app
        self._limiter_of = limiter_of
        self._wait_s = wait_s

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        limiter = self._limiter_of(environ)
        if limiter is not None:
            answer = ask_blocking(limiter, environ.get("CONTENT_LENGTH", ""), self._wait_s)
            if not answer.granted:
                status, headers, body = refusal(answer)
                headers["Content-Length"] = str(len(body))
                start_response(f"{status} {HTTPStatus(status).phrase}", [*headers.items()])
                return [body]
        return self._app(environ, start_response)
