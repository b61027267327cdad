"""The Kubernetes manifests, as far as they can be judged without a cluster.

Each manifest is held against Kubernetes' own schemas, strictly, and so is what kustomize makes of
them (where kubectl is installed); the settings and groups in the ConfigMaps go through rgd's own
validation. Not covered: that the daemons start, roll and drain on a cluster.
"""

import subprocess
import sys
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.support import components
from tests.tidy import tree

BASE = "k8s/base"


def kustomization() -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load(tree.text(f"{BASE}/kustomization.yaml"))
    return table


def manifest(name: str) -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load(tree.text(f"{BASE}/{name}"))
    return table


def validate(document: dict[str, Any]) -> None:
    latest = kubernetes_validate.latest_version()
    kubernetes_validate.validate(document, latest, strict=True)


@pytest.mark.parametrize("name", kustomization()["resources"])
def test_every_manifest_keeps_the_schema(name: str) -> None:
    validate(manifest(name))


def test_a_key_that_kubernetes_does_not_know_is_found() -> None:
    document = manifest("daemonset.yaml")
    document["spec"]["template"]["spec"]["containers"][0]["imagePullPolcy"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(document)


def test_every_manifest_file_is_applied() -> None:
    named = {f"{BASE}/{name}" for name in ("kustomization.yaml", *kustomization()["resources"])}
    here = {name for name in tree.files() if name.startswith(f"{BASE}/") and "/config/" not in name}
    assert here == named


def test_every_volume_of_a_config_map_is_generated() -> None:
    generated = {entry["name"] for entry in kustomization()["configMapGenerator"]}
    volumes = manifest("daemonset.yaml")["spec"]["template"]["spec"]["volumes"]
    assert {v["configMap"]["name"] for v in volumes if "configMap" in v} == generated


def test_rgd_finds_no_fault_in_what_the_config_maps_hold() -> None:
    files = [
        f"{BASE}/{name}"
        for entry in kustomization()["configMapGenerator"]
        for name in entry["files"]
    ]
    run = subprocess.run(
        [sys.executable, "-m", "rgd", "validate", *files],
        cwd=tree.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_usage_log_outlives_the_pod_and_no_size_limit_evicts_it() -> None:
    pod = manifest("daemonset.yaml")["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    (mount,) = [
        mount
        for mount in pod["containers"][0]["volumeMounts"]
        if yaml.safe_load(tree.text(f"{BASE}/config/rgd.yaml"))["log"]["dir"].startswith(
            f"{mount['mountPath']}/"
        )
    ]
    assert "hostPath" in volumes[mount["name"]]
    assert not [volume for volume in pod["volumes"] if "emptyDir" in volume]


def test_the_stop_fits_into_the_grace_period() -> None:
    pod = manifest("daemonset.yaml")["spec"]["template"]["spec"]
    waits_s = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    shutdown_timeout_s = 10
    assert waits_s + shutdown_timeout_s < pod["terminationGracePeriodSeconds"]


def test_what_kustomize_renders_keeps_the_schema() -> None:
    kubectl = components.kubectl()
    rendered = subprocess.run(
        [kubectl, "kustomize", tree.ROOT / BASE], capture_output=True, text=True, check=True
    )
    documents = list(yaml.safe_load_all(rendered.stdout))
    for document in documents:
        validate(document)
    kinds = sorted(document["kind"] for document in documents)
    assert kinds == [
        *("ConfigMap", "ConfigMap", "DaemonSet", "Namespace"),
        *("Service", "Service", "ServiceAccount"),
    ]


def test_the_rendered_file_is_what_kustomize_renders() -> None:
    kubectl = components.kubectl()
    rendered = subprocess.run(
        [kubectl, "kustomize", tree.ROOT / BASE], capture_output=True, text=True, check=True
    )
    assert tree.text("k8s/rgd.yaml") == rendered.stdout, "run: make manifests"
