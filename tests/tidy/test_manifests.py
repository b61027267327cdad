"""The Kubernetes manifests, as far as they can be judged without a cluster.

What kustomize makes of each target is held against Kubernetes' own schemas, strictly, and custom resources
against small ones of ours; the settings and groups of the ConfigMaps go through rgd's own validation, and are
compared with the pods around them. Pod security is in test_pod_security.py, a rollout in tests/e2e/test_rollout.py.
Not covered: that the daemons start, roll and drain on a cluster.
"""

import json
import os
import subprocess
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import jsonschema  # type: ignore[import-untyped]  # ships no types
import kubernetes_validate
import pytest
import yaml

from rgd.cli.validate import validate as rgd_validate
from rgd.config.load import load_settings
from rgd.config.settings import Settings
from rgd.errors import ConfigError
from rgd.ports.door import is_loopback
from rgd.version import __version__
from tests.support import manifests
from tests.support.manifests import TARGETS, Document, daemon_pod, found, rendered
from tests.support.pages import blocks
from tests.tidy import tree

#: Sets of components that go together, with the target.
COMBINATIONS = (
    ("base", ("podmonitor", "alerts")),
    ("overlays/prod", ("podmonitor-tls", "alerts", "report")),
    ("overlays/restricted", ("podmonitor-tls", "alerts", "report")),
)
#: The Secrets that must be there; docs/kubernetes.md says how to make them.
SECRETS = {
    "base": {"rgd-tokens"},
    "overlays/dev": {"rgd-tokens"},
    "overlays/prod": {"rgd-tokens", "rgd-tls", "rgd-pulsar", "rgd-tier"},
    "overlays/restricted": {"rgd-tokens", "rgd-tls", "rgd-pulsar", "rgd-tier"},
}
#: The settings and groups in a pod.
CONFIG = "/etc/rgd/config/rgd.yaml"
GROUPS = "/etc/rgd/groups/groups.yaml"
#: Below this, the log is on the node or in an emptyDir.
STATE = "/var/lib/rgd"


def check(document: Document) -> None:
    """Hold an object against its schema, strictly."""
    custom = tree.ROOT / "tests/data/crds" / f"{document['kind'].lower()}.json"
    if custom.exists():
        jsonschema.validate(document, json.loads(custom.read_text()))
    else:
        latest = kubernetes_validate.latest_version()
        kubernetes_validate.validate(document, latest, strict=True)


def settings_of(target: str, folder: Path) -> Settings:
    """The settings that the daemon of a target has: its file, and its container's environment."""
    files = manifests.put_files(target, folder)
    container = daemon_pod(target)["containers"][0]
    environ = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    return load_settings(files[CONFIG], environ, {})


@pytest.mark.parametrize("target", TARGETS)
def test_what_kustomize_renders_keeps_the_schemas(target: str) -> None:
    for document in rendered(target):
        check(document)


@pytest.mark.parametrize(("target", "names"), COMBINATIONS)
def test_components_add_what_keeps_the_schemas(
    target: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    documents = manifests.with_components(tmp_path, target, names)
    for document in documents:
        check(document)
        assert document["kind"] in {"Namespace", "PriorityClass"} or (
            document["metadata"]["namespace"] == "rgd"
        )
    endpoint = found(documents, "PodMonitor", "rgd")["spec"]["podMetricsEndpoints"][0]
    assert endpoint.get("scheme") == ("https" if "podmonitor-tls" in names else None)


def test_every_manifest_file_is_applied() -> None:
    unnamed = []
    for name in tree.files():
        path = Path(name)
        if path.parts[0] != "k8s" or name == "k8s/rgd.yaml" or path.name == "kustomization.yaml":
            continue
        folder = path.parent.parent if path.parent.name == "config" else path.parent
        if str(path.relative_to(folder)) not in tree.text(f"{folder}/kustomization.yaml"):
            unnamed.append(name)
    assert unnamed == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_pods_config_maps_and_secrets_are_there_or_are_to_be_made(target: str) -> None:
    documents, pod = rendered(target), daemon_pod(target)
    here = {(d["kind"], d["metadata"]["name"]) for d in documents}
    maps = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
    assert {("ConfigMap", name) for name in maps} <= here
    secrets = [
        *((v["secret"]["secretName"], v["secret"]) for v in pod["volumes"] if "secret" in v),
        *((e["secretRef"]["name"], e["secretRef"]) for e in pod["containers"][0]["envFrom"]),
    ]
    needed = {name for name, one in secrets if not one.get("optional", False)}
    assert needed == SECRETS[target]
    page = tree.text("docs/kubernetes.md")
    made = {name for kind, name in here if kind == "Secret"}
    assert [name for name in needed - made if f"secret generic {name} " not in page] == []


@pytest.mark.parametrize("target", TARGETS)
def test_rgd_finds_no_fault_in_what_a_pod_mounts(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [path for path in manifests.put_files(target, tmp_path).values() if path.suffix]
    configs = [path for path in files if path.name in {"rgd.yaml", "groups.yaml"}]
    rgd_validate(files=configs)
    assert capsys.readouterr().out.count(": ok (") == 2


def test_settings_can_be_checked_where_their_secrets_are_not(tmp_path: Path) -> None:
    files = manifests.put_files("overlays/prod", tmp_path)
    for path in ("tls/tls.key", "pulsar/token", "tokens/tokens.yaml"):
        files[f"/etc/rgd/{path}"].unlink()
    rgd_validate(files=[files[CONFIG]], elsewhere=True)
    with pytest.raises(ConfigError) as raised:
        rgd_validate(files=[files[CONFIG]])
    assert len(raised.value.faults) == 3


@pytest.mark.parametrize("target", TARGETS)
def test_settings_and_the_pod_around_them_agree(target: str, tmp_path: Path) -> None:
    settings, pod = settings_of(target, tmp_path), daemon_pod(target)
    container = pod["containers"][0]
    told = yaml.safe_load(found(rendered(target), "ConfigMap", "rgd-config")["data"]["rgd.yaml"])
    assert {"cluster", "exchange"} <= told.keys()
    assert "expected_brokers" in told["exchange"]
    # The whole stop fits into the grace period.
    waits_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert waits_s + settings.shutdown_timeout_ms / 1000 < pod["terminationGracePeriodSeconds"]
    # Probes speak what the daemon speaks.
    scheme = "HTTP" if settings.http.tls_cert is None else "HTTPS"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"].get("scheme", "HTTP") == scheme
    # Commands in the pod ask this pod, also one that is not ready: no Service is between them.
    environ = {one["name"]: one.get("value", "") for one in container["env"]}
    asked = urlsplit(environ.get("RGD_URL", "http://127.0.0.1")).hostname
    own = {alias["ip"]: alias["hostnames"] for alias in pod.get("hostAliases", ())}
    assert asked == "127.0.0.1" or asked in own["127.0.0.1"]
    # The log outlives the pod; or its pod is never evicted for it, and it goes to a tier.
    assert settings.log.dir.is_relative_to(STATE)
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    (state,) = [volume for volume in pod["volumes"] if volume["name"] == mounts[STATE]]
    if "hostPath" not in state:
        assert settings.log.tier_url is not None
        assert int(state["emptyDir"]["sizeLimit"].removesuffix("Gi")) << 30 >= (
            2 * settings.log.local_bytes
        )


def test_the_sidecar_of_the_page_is_sound(tmp_path: Path) -> None:
    (block,) = [
        one
        for one in blocks(tree.text("docs/kubernetes.md"))
        if (one.kind, one.argument) == ("tested", "tests/tidy/test_manifests.py")
    ]
    spec = yaml.safe_load(block.text)["spec"]
    labels = {"app": "broker"}
    pod = spec["template"]["spec"] | {"containers": [{"name": "broker", "image": "pulsar"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"serviceName": "x", "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "broker"}
    check({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})
    (sidecar,) = pod["initContainers"]
    environ = {one["name"]: one["value"] for one in sidecar["env"] if "value" in one}
    file = manifests.put_files("base", tmp_path)[CONFIG]
    settings = load_settings(file, environ, {}, insecure="--insecure" in sidecar["args"])
    assert is_loopback(settings.http.address[0])
    mounts = {mount["mountPath"] for mount in sidecar["volumeMounts"]}
    assert {str(Path(CONFIG).parent), str(Path(GROUPS).parent), STATE} == mounts


@pytest.mark.parametrize("target", ["overlays/prod", "overlays/restricted"])
def test_the_network_policy_lets_pass_what_the_settings_name(target: str, tmp_path: Path) -> None:
    settings = settings_of(target, tmp_path)
    policy = found(rendered(target), "NetworkPolicy", "rgd")["spec"]
    ins = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
    outs = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
    assert ins == {int(settings.http.listen.rpartition(":")[2])}
    assert {int(settings.exchange.url.rpartition(":")[2]), 443, 53} <= outs
    labels = found(rendered(target), "DaemonSet", "rgd")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()


def test_the_report_is_of_one_day_and_of_the_tier_that_daemons_write(tmp_path: Path) -> None:
    """The CronJob's own script, with an `rgd` that prints how it was called."""
    documents = manifests.with_components(tmp_path, "overlays/prod", ["report"])
    pod = dict(manifests.pods(documents))["rgd-report"]
    names = {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume}
    assert names <= {d["metadata"]["name"] for d in documents if d["kind"] == "ConfigMap"}
    manifests.put_files("overlays/prod", tmp_path)
    (tmp_path / "reports").mkdir()
    (tmp_path / "rgd").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "rgd").chmod(0o755)
    (container,) = pod["containers"]
    (script,) = container["args"]
    for path in (manifests.IN_POD, "/reports"):
        script = script.replace(path, f"{tmp_path}{path}")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    called = subprocess.check_output([*container["command"], script], env=environ, text=True)
    words = called.split()
    day = date.fromisoformat(Path(words[3]).name)
    assert words == [
        *("report", "s3://rgd-usage-log", "--out", f"{tmp_path}/reports/{day}"),
        *("--from", f"{day}T00:00:00Z", "--to", f"{day + timedelta(days=1)}T00:00:00Z"),
    ]


def test_images_have_the_version_of_this_tree() -> None:
    tags = {
        name: image["newTag"]
        for name in tree.files()
        if name.startswith("k8s/") and name.endswith("kustomization.yaml")
        for image in yaml.safe_load(tree.text(name)).get("images", ())
    }
    assert set(tags) == {"k8s/base/kustomization.yaml", "k8s/components/report/kustomization.yaml"}
    assert set(tags.values()) == {__version__}


def test_what_is_rendered_and_committed_is_what_would_be_rendered() -> None:
    assert tree.text("k8s/rgd.yaml") == manifests.rendered_text("base"), "run: make manifests"
    rules = yaml.safe_load(tree.text("observability/alerts.yaml"))
    rule = yaml.safe_load(tree.text("k8s/components/alerts/prometheusrule.yaml"))
    assert rule["spec"] == rules, "run: make manifests"
