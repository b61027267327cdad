"""`GET /`: the live page, its script and style, and the runbooks: static files that need no token.

Law: what the page shows it asks of `/v1`, with a token that only its memory has. Its policy lets it load nothing from
elsewhere, run no inline script, and be framed by nobody. The files have no build step; `live.js` is what browsers run.
"""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Final

from rgd.adapters.http.endpoint import Endpoint, ResponseSpec
from rgd.adapters.http.reply import Call, Handler, Reply

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

#: By path: the file, its type, and what it is.
_FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8", "The live page."),
    "/live.js": ("live.js", "text/javascript; charset=utf-8", "Its script."),
    "/live.css": ("live.css", "text/css; charset=utf-8", "Its style."),
    "/live.svg": ("live.svg", "image/svg+xml", "Its icon."),
    "/runbooks.md": ("runbooks.md", "text/markdown; charset=utf-8", "What to do about alerts."),
}


def page_endpoints(needs_token: Callable[[], bool]) -> tuple[Endpoint, ...]:
    """The files; the page is told whether it has to ask for a token."""
    return tuple(
        Endpoint(
            method="GET",
            path=path,
            scope=None,
            handler=_handler(Reply(200, _read(file), _HEADERS, content_type), needs_token),
            summary=summary,
            answers={200: ResponseSpec(str, content_type=content_type.partition(";")[0])},
        )
        for path, (file, content_type, summary) in _FILES.items()
    )


def _handler(reply: Reply, needs_token: Callable[[], bool]) -> Handler:
    asking = reply._replace(body=reply.body.replace(b"<html ", b'<html data-token="needed" ', 1))

    async def answer(_call: Call) -> Reply:
        return asking if needs_token() else reply

    return answer


def _read(file: str) -> bytes:
    """A file of this package; the runbooks come into it with the wheel, and are in docs/ before."""
    packaged = files(__package__).joinpath(file)
    if packaged.is_file():
        return packaged.read_bytes()
    return (Path(__file__).parents[4] / "docs" / file).read_bytes()
