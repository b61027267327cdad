"""A second broker of a shared standalone's cluster: a JVM of its own, with the same ZooKeeper and bookie.

The law: it ends with the process that started it, and keeps its files in the standalone's folder.
Both need a load manager that knows of several brokers: `SHARED_SETTINGS` for the standalone.
"""

import json
import subprocess
import time
from pathlib import Path
from typing import Final

from tests.support.child_processes import end, free_ports, start_dying_with_parent
from tests.support.pulsar_standalone import (
    CLUSTER,
    KEEPING_TOPICS,
    READY_TIMEOUT_S,
    STOP_TIMEOUT_S,
    PulsarStandalone,
    PulsarStartError,
    edited_conf,
    ensure_distribution,
    loopback_http,
)

_MANAGER = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
#: For the standalone whose cluster further brokers join. Nothing moves but by an operator's hand.
SHARED_SETTINGS: Final = {
    "loadManagerClassName": _MANAGER,
    "loadBalancerEnabled": "true",
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
    "forceDeleteNamespaceAllowed": "true",
    # Else no topic is loaded before its namespace's topic of policies, of which each broker may believe that
    # the other one has it, for minutes.
    "topicLevelPoliciesEnabled": "false",
    "systemTopicEnabled": "false",
}
_POLL_S = 0.2
_HTTP_TIMEOUT_S = 5


class FurtherBroker:
    """It is not started yet.

    Args:
        first: a standalone that `is_shared`.
    """

    def __init__(self, first: PulsarStandalone) -> None:
        self._first = first
        service, admin = free_ports(2)
        self.address = f"127.0.0.1:{admin}"
        self.admin_url = f"http://{self.address}"
        self._conf = first.folder / "broker.conf"
        self._log = first.folder / "broker.log"
        metadata = f"zk:127.0.0.1:{first.ports.zookeeper}"
        settings = {
            **SHARED_SETTINGS,
            **KEEPING_TOPICS,
            "metadataStoreUrl": metadata,
            "configurationMetadataStoreUrl": metadata,
            "clusterName": CLUSTER,
            "bindAddress": "127.0.0.1",
            "advertisedAddress": "127.0.0.1",
            "brokerServicePort": str(service),
            "webServicePort": str(admin),
            "brokerClient_dnsLookupBindAddress": "127.0.0.1",
            # There is one bookie.
            "managedLedgerDefaultEnsembleSize": "1",
            "managedLedgerDefaultWriteQuorum": "1",
            "managedLedgerDefaultAckQuorum": "1",
        }
        shipped = (ensure_distribution() / "conf" / "broker.conf").read_text()
        self._conf.write_text(edited_conf(shipped, settings))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until both brokers know it."""
        environment = self._first.environment() | {"PULSAR_BROKER_CONF": str(self._conf)}
        command: list[str | Path] = [ensure_distribution() / "bin" / "pulsar", "broker"]
        self._process = start_dying_with_parent(command, environment=environment, log=self._log)
        deadline = time.monotonic() + READY_TIMEOUT_S
        urls = self.admin_url, self._first.admin_url
        while not all(self._is_known_to(url) for url in urls):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise PulsarStartError(self._log.read_text(errors="replace")[-4000:])
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End it in order: the cluster knows at once."""
        if self._process is not None:
            end(self._process, STOP_TIMEOUT_S)

    def _is_known_to(self, url: str) -> bool:
        try:
            with loopback_http.open(f"{url}/admin/v2/brokers", timeout=_HTTP_TIMEOUT_S) as answer:
                return self.address in json.loads(answer.read())
        except OSError:
            return False
