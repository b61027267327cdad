"""`/metrics`.

Law: only so many scrapes are under way. How a page is rendered is `rgd.adapters.metrics`' business.
"""

from typing import Final

from rgd.adapters.http.answers import Reason
from rgd.adapters.http.endpoint import Endpoint, ResponseSpec
from rgd.adapters.http.errors import Overloaded
from rgd.adapters.http.reply import Call, MetricsPage, Reply
from rgd.ports.door import Scope

#: Scrapes at work or waiting; the next one is answered 503.
SCRAPES_MAX: Final = 4


class Scrapes:
    """Answers Prometheus."""

    def __init__(self, metrics: MetricsPage) -> None:
        self._metrics = metrics
        self._scrapes = 0

    @Endpoint(
        "GET",
        "/metrics",
        Scope.READ,
        {
            200: ResponseSpec(str, content_type="text/plain"),
            503: ResponseSpec(Reason, headers=("Retry-After",)),
        },
        is_probe=True,
    )
    async def answer(self, call: Call) -> Reply:
        """Metrics for Prometheus, in the format that the Accept header asks for."""
        if self._scrapes >= SCRAPES_MAX:
            raise Overloaded(f"{SCRAPES_MAX} scrapes of /metrics are under way already")
        self._scrapes += 1
        try:
            body, content_type = await self._metrics(call.headers.get("Accept", ""))
        finally:
            self._scrapes -= 1
        return Reply(body=body, content_type=content_type)
