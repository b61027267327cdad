"""Kubernetes' pod security standard `restricted`, which overlays/restricted keeps and base does not.

What the standard asks for is set, to the letter, and nothing is set that it forbids: so few keys need no table of its controls.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import manifests
from tests.support.manifests import Document, daemon_pod, pods, rendered

CONTEXT = {
    "runAsNonRoot": True,
    "runAsUser": 10001,
    "runAsGroup": 10001,
    "fsGroup": 10001,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTEXT_OF_CONTAINERS = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "secret"}
#: These lead to the node, wherever in a pod they stand; `host` is that of a probe or a hook.
TO_THE_NODE = ("hostNetwork", "hostPID", "hostIPC", "hostPort", "host")


def breaks(pod: Document) -> Iterator[str]:
    """What a pod has that the standard does not allow."""
    if pod.get("securityContext") != CONTEXT:
        yield "pod"
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        if container.get("securityContext") != CONTEXT_OF_CONTAINERS:
            yield container["name"]
    for volume in pod.get("volumes", ()):
        yield from volume.keys() - {"name"} - VOLUMES
    yield from (key for key in TO_THE_NODE if f'"{key}": ' in json.dumps(pod))


def test_restricted_keeps_the_standard_with_every_component(tmp_path: Path) -> None:
    documents = manifests.with_components(
        tmp_path, "overlays/restricted", ["podmonitor-tls", "alerts", "report"]
    )
    assert {name: [*breaks(pod)] for name, pod in pods(documents)} == {"rgd": [], "rgd-report": []}
    labels = manifests.found(documents, "Namespace", "rgd")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("target", ["base", "overlays/prod"])
def test_the_others_break_it_only_for_the_folder_on_the_node(target: str) -> None:
    assert [*breaks(daemon_pod(target))] == ["own-state", "hostPath"]


def test_dev_has_a_pulsar_of_its_own() -> None:
    assert {name for name, _ in pods(rendered("overlays/dev"))} == {"rgd", "pulsar"}
