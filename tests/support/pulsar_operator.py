"""An operator of an Apache Pulsar: asks its admin API, and asks again where Pulsar wants to be asked again.

The law: what Pulsar refuses for good fails the test at once, with Pulsar's reason. What it cannot answer now, it
answers within `TIMEOUT_S`.
"""

import asyncio
import json
import tempfile
import time
import urllib.error
import urllib.request
from collections import deque
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from rgd.app.access import make_namespace
from rgd.config.settings import ExchangeSettings
from tests.support.pulsar_standalone import PulsarStandalone, loopback_http

TIMEOUT_S = 60
#: Of one call; asked again, Pulsar answers.
CALL_TIMEOUT_S = 15
#: Pause before Pulsar is asked again: it needs the processor for what it is asked again for.
REPEAT_S = 0.1


def is_to_be_repeated(method: str, status: int, reason: bytes) -> bool:
    """Whether Pulsar is to be asked again.

    A bundle is between two brokers, or its new owner is not there yet: Pulsar says so itself. Or what is to be deleted
    is not empty yet, because what was in it is still being deleted.
    """
    if method == "DELETE" and status in {HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED}:
        return True
    return b"redo the lookup" in reason or status == HTTPStatus.SERVICE_UNAVAILABLE


def is_in_force(found: bytes, body: dict[str, int] | None) -> bool:
    """Whether Pulsar has this policy, or none."""
    policy = json.loads(found or b"null")
    if body is None or policy is None:
        return policy is body
    return bool(body.items() <= policy.items())


class Operator:
    """Changes a Pulsar over REST, as pulsar-admin does.

    Args:
        apache: the cluster's first broker.
        further: the admin URLs of its other brokers. A broker never answers a question about a bundle that gets its
            owner while it looks the owner up; then the next broker is asked.
        token: a superuser's, where Pulsar asks for one.
    """

    def __init__(self, apache: PulsarStandalone, *further: str, token: str = "") -> None:
        self._brokers = deque([apache.admin_url, *further])
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """What Pulsar answers to a path below /admin/v2/, or a whole one; fails the test if it refuses. Blocks."""
        data = None if body is None else json.dumps(body).encode()
        after_all = HTTPStatus.NOT_FOUND if method == "DELETE" else HTTPStatus.CONFLICT
        ends_s, is_repeated, reason = time.monotonic() + TIMEOUT_S, False, b"no answer"
        while time.monotonic() < ends_s:
            try:
                return self._answer(method, urljoin(f"{self._brokers[0]}/admin/v2/", path), data)
            except urllib.error.HTTPError as error:
                reason = error.read()
                # What it did not answer in time it may have done.
                if is_repeated and error.code == after_all:
                    return b""
                if not is_to_be_repeated(method, error.code, reason):
                    error.add_note(f"{method} {path}: {reason.decode(errors='replace')}")
                    raise
                self._brokers.rotate()
            except TimeoutError:
                is_repeated = True
                self._brokers.rotate()
            except urllib.error.URLError as error:
                # It has just ended, or it sent this on to one that has.
                if not isinstance(error.reason, ConnectionRefusedError):
                    raise
                self._brokers.rotate()
            time.sleep(REPEAT_S)
        raise TimeoutError(f"{method} {path}: {reason.decode(errors='replace')}")

    def _answer(self, method: str, url: str, data: bytes | None) -> bytes:
        request = urllib.request.Request(url, data, self._headers, method=method)
        try:
            with loopback_http.open(request, timeout=CALL_TIMEOUT_S) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            # urllib follows redirects of reads only.
            if error.code == HTTPStatus.TEMPORARY_REDIRECT:
                return self._answer(method, error.headers["Location"], data)
            raise

    async def call(self, method: str, path: str, body: Any = None) -> None:
        """One change; fails the test if Pulsar refuses it."""
        await asyncio.to_thread(self.ask, method, path, body)

    async def answer(self, path: str) -> bytes:
        """What Pulsar answers; fails the test if it refuses."""
        return await asyncio.to_thread(self.ask, "GET", path)

    async def get(self, path: str) -> Any:
        """What Pulsar answers, as JSON."""
        return json.loads(await self.answer(path) or b"null")

    async def policy(self, path: str, body: dict[str, int] | None) -> None:
        """Set a policy of a topic, or delete it.

        Pulsar writes it to a topic that it reads itself, so it answers before the policy is in force.
        """
        await self.call("DELETE" if body is None else "POST", path, body)
        async with asyncio.timeout(TIMEOUT_S):
            while not is_in_force(await self.answer(path), body):
                pass

    async def namespace(self, name: str) -> None:
        """A namespace, with its tenant."""
        tenant = name.partition("/")[0]
        await self.call("PUT", f"tenants/{tenant}", {"allowedClusters": ["standalone"]})
        await self.call("PUT", f"namespaces/{name}", {})

    async def topic(self, full: str, subscription: str) -> None:
        """A topic that stays, because it has a subscription."""
        path = full.replace("://", "/")
        await self.call("PUT", path)
        await self.call("PUT", f"{path}/subscription/{subscription}", "latest")


async def ensure_namespace(admin_url: str, namespace: str, token: str | None = None) -> None:
    """Make a namespace as a daemon does that has this admin URL, and a token.

    Raises:
        ExchangeDown: as `make_namespace`.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".token") as file:
        file.write(token or "")
        file.flush()
        named = Path(file.name) if token is not None else None
        settings = ExchangeSettings(url="pulsar://p", admin_url=admin_url, admin_token_file=named)
        await make_namespace(settings, namespace, keeps=True)
