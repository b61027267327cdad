"""Daemons under load whose Apache Pulsar is killed: they hold their shares, and agree on others once it is back.

As one run of bench/pulsar_kills.py, which does it 20 times, and measures. Not covered: outages of a network
(tests/contract/exchange/test_outages.py, bench/outages.py).
"""

import asyncio
from pathlib import Path

import pytest

from rgd.adapters.exchange.pulsar_admin import ensure_namespace
from rgd.adapters.exchange.pulsar_client import PulsarSettings
from tests.support.killed_pulsar import Cluster, Outage, cluster_on, until_served
from tests.support.pulsar_standalone import PulsarStandalone
from tests.support.secured_pulsar import ADMIN, SecuredPulsar

pytestmark = [pytest.mark.pulsar, pytest.mark.slow]

NAMESPACE = "public/rgd"
#: Part of the quota by which a share may change while Pulsar is away: the last reports before that are in force.
HARDLY = 0.02
#: Of all daemons, after two kills: a session that is never closed has more than five, and each kill makes several of
#: each daemon.
DESCRIPTORS_MORE = 6


async def kill(
    cluster: Cluster, pulsar: PulsarStandalone, url: str, plain: PulsarSettings
) -> Outage:
    async def restart() -> None:
        await pulsar.restart_registered()
        await until_served(url, plain)

    return await cluster.outage(lambda: asyncio.to_thread(pulsar.kill), restart)


async def test_daemons_hold_their_shares_and_agree_again(
    apache_pulsar: PulsarStandalone, tmp_path: Path
) -> None:
    await ensure_namespace(apache_pulsar.admin_url, NAMESPACE)
    url, plain = apache_pulsar.service_url, PulsarSettings()
    async with cluster_on(url, tmp_path) as cluster:
        before = cluster.held().descriptors
        outages = [await kill(cluster, apache_pulsar, url, plain) for _ in range(2)]
        # Clients whose connection broke are closed some seconds after the return.
        await cluster.until_held(before + DESCRIPTORS_MORE)
    assert max(outage.moved for outage in outages) < HARDLY


async def test_so_they_do_with_tokens_and_tls(tmp_path: Path) -> None:
    secured = await asyncio.to_thread(SecuredPulsar, tmp_path / "pulsar")
    try:
        await ensure_namespace(secured.pulsar.admin_url, NAMESPACE, secured.token(ADMIN))
        settings = secured.daemon_settings("rgd", NAMESPACE, tmp_path / "token")
        plain = PulsarSettings(token_file=tmp_path / "token", tls_trust_certs=secured.cert)
        async with cluster_on(secured.tls_url, tmp_path / "daemons", settings) as cluster:
            outage = await kill(cluster, secured.pulsar, secured.tls_url, plain)
    finally:
        secured.close()
    assert outage.moved < HARDLY
