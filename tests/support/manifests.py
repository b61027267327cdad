"""The Kubernetes manifests as kustomize renders them, and what a pod of them sees.

Law: what is judged is what `kubectl apply -k` would send, overlays and components included.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support import components
from tests.tidy import tree

Document = dict[str, Any]

K8S = tree.ROOT / "k8s"
#: What one can apply.
TARGETS = ("base", "overlays/dev", "overlays/prod", "overlays/restricted")
#: Where the manifests put files.
IN_POD = "/etc/rgd"


@cache
def _rendered(target: Path) -> str:
    done = subprocess.run(
        [components.kubectl(), "kustomize", target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered_text(target: str) -> str:
    """The YAML of all objects of a target."""
    return _rendered(K8S / target)


def rendered(target: str) -> list[Document]:
    """The objects of a target."""
    return list(yaml.safe_load_all(rendered_text(target)))


def with_components(folder: Path, target: str, names: Sequence[str]) -> list[Document]:
    """The objects of a kustomization in a folder of its own, of a target with components."""
    table = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(K8S / target, folder)],
        "components": [os.path.relpath(K8S / "components" / name, folder) for name in names],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(table))
    return list(yaml.safe_load_all(_rendered(folder)))


def found(documents: Sequence[Document], kind: str, name: str) -> Document:
    """The one object of that kind and name; a generated name may have its hash."""
    (one,) = [
        document
        for document in documents
        if document["kind"] == kind
        and (document["metadata"]["name"] == name or _without_hash(document) == name)
    ]
    return one


def _without_hash(document: Document) -> str:
    return str(document["metadata"]["name"]).rpartition("-")[0]


def pods(documents: Sequence[Document]) -> Iterator[tuple[str, Document]]:
    """The pods that the objects make: the object's name, the pod's specification."""
    for document in documents:
        spec = document.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            yield document["metadata"]["name"], spec["template"]["spec"]


def daemon_pod(target: str) -> Document:
    """The pod of the DaemonSet."""
    return dict(pods(rendered(target)))["rgd"]


def put_files(target: str, folder: Path) -> dict[str, Path]:
    """What the daemon's pod finds below /etc/rgd, in a folder of this machine; by the path in the pod.

    Secrets that nobody generates have the files that the settings name; paths in the settings lead to the folder.
    """
    documents, pod = rendered(target), daemon_pod(target)
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    files: dict[str, str] = {}
    for volume in pod["volumes"]:
        path = mounts[volume["name"]]
        if "configMap" in volume:
            name = volume["configMap"]["name"]
            (held,) = [
                d["data"]
                for d in documents
                if (d["kind"], d["metadata"]["name"]) == ("ConfigMap", name)
            ]
            files |= {f"{path}/{key}": text for key, text in held.items()}
        elif "secret" in volume:
            files |= {f"{path}/{key}": "secret" for key in _keys_named_below(path, documents)}
    put = {}
    for path, text in files.items():
        put[path] = folder / path.removeprefix("/")
        put[path].parent.mkdir(parents=True, exist_ok=True)
        put[path].write_text(text.replace(IN_POD, f"{folder}{IN_POD}"))
        put[path].chmod(0o440)
    return put


def _keys_named_below(path: str, documents: Sequence[Document]) -> Iterator[str]:
    """The files of a folder that the settings name."""
    settings = yaml.safe_load(found(documents, "ConfigMap", "rgd-config")["data"]["rgd.yaml"])
    for section in settings.values():
        for value in section.values() if isinstance(section, dict) else ():
            if isinstance(value, str) and value.startswith(f"{path}/"):
                yield value.removeprefix(f"{path}/")
