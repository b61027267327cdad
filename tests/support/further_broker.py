"""A second broker of a shared standalone's cluster: a JVM of its own, with the same ZooKeeper and bookie.

The law: it ends with the process that started it, and keeps its files in the standalone's folder.
Both need a load manager that knows of several brokers: `SHARED_SETTINGS` for the standalone.
"""

import json
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.child_processes import free_ports, start_dying_with_parent
from tests.support.pulsar_standalone import (
    CLUSTER,
    READY_TIMEOUT_S,
    STOP_TIMEOUT_S,
    PulsarStandalone,
    PulsarStartError,
    edited_conf,
    ensure_distribution,
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

_http = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class FurtherBroker:
    """A context manager; it is up on entry.

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

    def __enter__(self) -> Self:
        environment = self._first.environment() | {"PULSAR_BROKER_CONF": str(self._conf)}
        command: list[str | Path] = [ensure_distribution() / "bin" / "pulsar", "broker"]
        self._process = start_dying_with_parent(command, environment=environment, log=self._log)
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it in order: the cluster knows at once."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        urls = self.admin_url, self._first.admin_url
        while not all(self._is_known_to(url) for url in urls):
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise PulsarStartError(self._log.read_text(errors="replace")[-4000:])
            time.sleep(_POLL_S)

    def _is_known_to(self, url: str) -> bool:
        try:
            with _http.open(f"{url}/admin/v2/brokers", timeout=_HTTP_TIMEOUT_S) as answer:
                return self.address in json.loads(answer.read())
        except OSError:
            return False
