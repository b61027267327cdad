"""The client that shell commands use, against a real door: it follows all pages."""

from pathlib import Path

import pytest

from rgd.adapters.http.client import PAGE_LIMIT, DaemonClient
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.metrics.exposition import Exposition
from rgd.core.policies.model import Group
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.metrics import Sample
from tests.integration.http.door import open_door
from tests.unit.adapters.http.small_daemon import SmallDaemon

NAMES = [f"group-{number:04}" for number in range(3 * PAGE_LIMIT + 1)]


@pytest.mark.parametrize("over", ["tcp", "unix"])
async def test_lists_are_followed_to_their_end(over: str, tmp_path: Path) -> None:
    daemon = SmallDaemon(PolicySnapshot({name: Group(name) for name in NAMES}))
    daemon.peers = [f"broker-{number:04}" for number in range(2, PAGE_LIMIT + 2)]
    path = tmp_path / "rgd.sock"
    async with open_door(HttpSettings(port=0, unix_socket=path), daemon=daemon) as door:
        base = door.url if over == "tcp" else f"unix://{path}"
        async with DaemonClient(base) as client:
            groups = await client.groups()
            brokers = await client.brokers()

    assert [view["group"] for view in groups] == NAMES
    assert [view["broker"] for view in brokers] == sorted(daemon.broker_names())
    pages = [seen.route for seen in door.observed]
    assert pages == ["/v1/groups"] * 4 + ["/v1/brokers"] * 2


class Nothing:
    """A source without figures."""

    def samples(self) -> list[Sample]:
        return []


async def test_the_doors_figures_are_among_the_metrics() -> None:
    exposition = Exposition(Nothing())
    async with open_door(HttpSettings(port=0), page=exposition.render) as door:
        exposition.also(door.server.samples)
        page = (await door.send("GET", "/metrics")).body.decode()

    assert "\nrgd_http_connections 1.0\n" in page
    for line in (
        'rgd_http_connections_refused_total{reason="connections_max"} 0.0',
        'rgd_http_connections_closed_total{reason="slow_reader"} 0.0',
        "rgd_http_unread_bytes 0.0",
        "rgd_http_body_bytes 0.0",
    ):
        assert f"\n{line}\n" in page
