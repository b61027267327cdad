"""Daemons under load whose Apache Pulsar is killed: they hold their shares, and agree on others once it is back.

With tokens and TLS, which a client that connects again has to bring along. As one run of bench/pulsar_kills.py, which does
it 20 times, and measures. Not covered: outages of a network (tests/contract/exchange/test_outages.py, bench/outages.py).
"""

import asyncio
from pathlib import Path

import pytest

from rgd.adapters.exchange.pulsar_client import PulsarSettings
from tests.support.killed_pulsar import cluster_on, until_served
from tests.support.pulsar_operator import ensure_namespace
from tests.support.secured_pulsar import ADMIN, SecuredPulsar

pytestmark = [pytest.mark.pulsar, pytest.mark.slow, pytest.mark.xdist_group("killed-pulsar")]

NAMESPACE = "public/rgd"
#: Part of the quota by which a share may change while Pulsar is away: the last reports before that are in force.
HARDLY = 0.02
#: Of all daemons, after two kills: a session that is never closed has more than five, and each kill makes several of
#: each daemon.
DESCRIPTORS_MORE = 6


async def test_daemons_hold_their_shares_and_agree_again(tmp_path: Path) -> None:
    secured = await asyncio.to_thread(SecuredPulsar, tmp_path / "pulsar")
    pulsar = secured.pulsar
    try:
        await ensure_namespace(pulsar.admin_url, NAMESPACE, secured.token(ADMIN))
        settings = secured.daemon_settings("rgd", NAMESPACE, tmp_path / "token")
        plain = PulsarSettings(token_file=tmp_path / "token", tls_trust_certs=secured.cert)

        async def restart() -> None:
            await pulsar.restart_registered()
            await until_served(secured.tls_url, plain)

        async with cluster_on(secured.tls_url, tmp_path / "daemons", settings) as cluster:
            before = cluster.held().descriptors
            for _ in range(2):
                outage = await cluster.outage(lambda: asyncio.to_thread(pulsar.kill), restart)
                assert outage.moved < HARDLY
            # Clients whose connection broke are closed some seconds after the return.
            await cluster.until_held(before + DESCRIPTORS_MORE)
    finally:
        secured.close()
