"""Kubernetes' pod security standard `restricted`, which overlays/restricted keeps and base does not.

The standard's controls are a table; each row has a change that breaks it, so that each is seen to fail.
"""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import manifests
from tests.support.manifests import Document, daemon_pod, pods, rendered

VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"),
        *("projected", "secret"),
    }
)
SYSCTLS = frozenset({"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range"})
SELINUX = frozenset(
    {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
)
SECCOMP = frozenset({"RuntimeDefault", "Localhost"})


def containers(pod: Document) -> list[Document]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def contexts(pod: Document) -> Iterator[Document]:
    """Of the pod and of each container."""
    yield pod.get("securityContext", {})
    yield from own_contexts(pod)


def own_contexts(pod: Document) -> Iterator[Document]:
    for container in containers(pod):
        yield container.get("securityContext", {})


def in_force(pod: Document, key: str) -> Iterator[Any]:
    """A container's own value, else the pod's."""
    for own in own_contexts(pod):
        yield own.get(key, pod.get("securityContext", {}).get(key))


def handlers(pod: Document) -> Iterator[Document]:
    """What probes and hooks ask."""
    for container in containers(pod):
        hooks = container.get("lifecycle", {})
        for one in (
            container.get(name, {}) for name in ("startupProbe", "livenessProbe", "readinessProbe")
        ):
            yield from (one.get(kind, {}) for kind in ("httpGet", "tcpSocket"))
        for one in hooks.values():
            yield from (one.get(kind, {}) for kind in ("httpGet", "tcpSocket"))


Keeps = Callable[[Document], bool]
Breaks = Callable[[Document, Document], Any]

#: A control, whether a pod keeps it, and a change of the pod or of its first container that breaks it.
CONTROLS: dict[str, tuple[Keeps, Breaks]] = {
    "host namespaces": (
        lambda pod: not any(pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")),
        lambda pod, _: pod.update(hostPID=True),
    ),
    "host process": (
        lambda pod: not any(c.get("windowsOptions", {}).get("hostProcess") for c in contexts(pod)),
        lambda _, one: one["securityContext"].update(windowsOptions={"hostProcess": True}),
    ),
    "privileged": (
        lambda pod: not any(c.get("privileged") for c in own_contexts(pod)),
        lambda _, one: one["securityContext"].update(privileged=True),
    ),
    "capabilities": (
        lambda pod: all(
            "ALL" in c.get("capabilities", {}).get("drop", ())
            and set(c["capabilities"].get("add", ())) <= {"NET_BIND_SERVICE"}
            for c in own_contexts(pod)
        ),
        lambda _, one: one["securityContext"]["capabilities"].update(add=["CHOWN"]),
    ),
    "volume types": (
        lambda pod: all(v.keys() - {"name"} <= VOLUMES for v in pod.get("volumes", ())),
        lambda pod, _: pod["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
    ),
    "host ports": (
        lambda pod: not any(p.get("hostPort") for c in containers(pod) for p in c.get("ports", ())),
        lambda _, one: one.update(ports=[{"containerPort": 1, "hostPort": 1}]),
    ),
    "hosts of probes and hooks": (
        lambda pod: not any("host" in one for one in handlers(pod)),
        lambda _, one: one.update(livenessProbe={"httpGet": {"host": "elsewhere"}}),
    ),
    "AppArmor": (
        lambda pod: all(
            c.get("appArmorProfile", {}).get("type", "RuntimeDefault") in SECCOMP
            for c in contexts(pod)
        ),
        lambda _, one: one["securityContext"].update(appArmorProfile={"type": "Unconfined"}),
    ),
    "SELinux": (
        lambda pod: all(
            options.get("type", "") in SELINUX and not options.keys() & {"user", "role"}
            for options in (c.get("seLinuxOptions", {}) for c in contexts(pod))
        ),
        lambda _, one: one["securityContext"].update(seLinuxOptions={"role": "sysadm_r"}),
    ),
    "/proc": (
        lambda pod: all(c.get("procMount", "Default") == "Default" for c in own_contexts(pod)),
        lambda _, one: one["securityContext"].update(procMount="Unmasked"),
    ),
    "seccomp": (
        lambda pod: all((c or {}).get("type") in SECCOMP for c in in_force(pod, "seccompProfile")),
        lambda pod, _: pod["securityContext"].pop("seccompProfile"),
    ),
    "sysctls": (
        lambda pod: all(
            one["name"] in SYSCTLS for one in pod.get("securityContext", {}).get("sysctls", ())
        ),
        lambda pod, _: pod["securityContext"].update(sysctls=[{"name": "kernel.msgmax"}]),
    ),
    "privilege escalation": (
        lambda pod: all(c.get("allowPrivilegeEscalation") is False for c in own_contexts(pod)),
        lambda _, one: one["securityContext"].pop("allowPrivilegeEscalation"),
    ),
    "not as root": (
        lambda pod: all(value is True for value in in_force(pod, "runAsNonRoot")),
        lambda _, one: one["securityContext"].update(runAsNonRoot=False),
    ),
    "not as user 0": (
        lambda pod: all(c.get("runAsUser") != 0 for c in contexts(pod)),
        lambda pod, _: pod["securityContext"].update(runAsUser=0),
    ),
}


def broken(pod: Document) -> set[str]:
    return {name for name, (keeps, _) in CONTROLS.items() if not keeps(pod)}


def test_restricted_keeps_the_standard_with_every_component(tmp_path: Path) -> None:
    documents = manifests.with_components(
        tmp_path, "overlays/restricted", ["podmonitor-tls", "alerts", "report"]
    )
    assert {name: broken(pod) for name, pod in pods(documents)} == {
        "rgd": set(),
        "rgd-report": set(),
    }
    labels = manifests.found(documents, "Namespace", "rgd")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("target", ["base", "overlays/prod"])
def test_the_others_break_it_only_for_the_folder_on_the_node(target: str) -> None:
    assert broken(daemon_pod(target)) == {
        *("capabilities", "volume types", "not as root", "not as user 0"),
    }


@pytest.mark.parametrize("control", CONTROLS)
def test_a_pod_that_breaks_a_control_is_found(control: str) -> None:
    pod = copy.deepcopy(daemon_pod("overlays/restricted"))
    CONTROLS[control][1](pod, pod["containers"][0])
    assert broken(pod) == {control}


def test_dev_has_a_pulsar_of_its_own() -> None:
    assert {name for name, _ in pods(rendered("overlays/dev"))} == {"rgd", "pulsar"}
