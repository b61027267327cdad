"""The list of all calls: method, path, the scope it needs, who answers, what it may answer.

Law: a call exists if and only if it stands here (but /openapi.json, which `plane` makes of
the list); the router, the tokens' scopes and that document are all made from it. Its part under `/admin/v2` is
written in `pulsar_admin.routes`, what connections answer themselves in `hot`.

`HEAD` goes wherever `GET` goes and is not listed.
"""

import asyncio
from collections.abc import Callable, Iterator

from rgd.adapters.http.backlogs import Backlogs
from rgd.adapters.http.endpoint import Endpoint, answered
from rgd.adapters.http.explain import Explain
from rgd.adapters.http.groups import Groups
from rgd.adapters.http.hot import HOT
from rgd.adapters.http.live import Live
from rgd.adapters.http.live_page import page_endpoints
from rgd.adapters.http.log import Log
from rgd.adapters.http.pulsar_admin import routes as pulsar_admin
from rgd.adapters.http.reply import MetricsPage
from rgd.adapters.http.scrapes import Scrapes
from rgd.adapters.http.settings import HttpSettings
from rgd.ports.daemon import Daemon
from rgd.ports.log_door import LogDoor


def endpoints(
    daemon: Daemon,
    settings: HttpSettings,
    *,
    metrics: MetricsPage,
    needs_token: Callable[[], bool],
    log_door: LogDoor | None,
    live: Live | None,
) -> Iterator[Endpoint]:
    """Every call there is, and who answers it; the arguments are those of `plane.Plane`."""
    #: Held while a group is changed in part, deleted or attached to.
    writing = asyncio.Lock()
    yield from HOT
    yield from answered(Groups(daemon, writing))
    yield from answered(Explain(daemon))
    yield from answered(Backlogs(daemon.backlogs, settings))
    yield from answered(Log(log_door))
    if live is not None:
        yield from answered(live)
        yield from page_endpoints(needs_token)
    yield from pulsar_admin.endpoints(daemon, writing)
    yield from answered(Scrapes(metrics))
