"""What a test may need that pip does not bring: Java, Maven, a browser, Prometheus, the embedded broker.

The law: a test that needs something which cannot be had here skips loudly, with the reason and the
remedy; where `CI` is set nothing may be missing, and the same call fails the test instead. So a
green run under CI has run everything, and a laptop without Java still gets a useful run.

Each function answers with the component's path, or does not return:

    from tests.support import components

    @pytest.fixture(scope="session")
    def pulsar_home() -> Path:
        maven = components.maven()  # skips, or fails where CI is set
        ...

A need of another kind goes through `need(...)` when it is a value that may be None, and through
`missing(...)` otherwise. tests/conftest.py counts the skips and prints them on the run's last line.
Starting a component is the business of the fixtures, not of this module.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

JAVA_VERSION_MIN = 17

#: Tests with one of these markers may not skip where CI is set (tests/conftest.py sees to it).
REQUIRED_MARKERS = frozenset({"pulsar", "embedded", "spark", "e2e"})

_Found = TypeVar("_Found")


def in_ci() -> bool:
    """Whether nothing may be skipped: `CI` is set, as every CI service does."""
    return os.environ.get("CI", "").strip().lower() not in {"", "0", "false", "no"}


def cache_dir() -> Path:
    """The folder outside the tree for what is fetched once: `$XDG_CACHE_HOME/rgd`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rgd"


def missing(component: str, *, reason: str, remedy: str) -> NoReturn:
    """End the test for want of a component: with a skip, or with a failure where CI is set."""
    message = f"{component}: {reason}; {remedy}"
    if in_ci():
        pytest.fail(f"{message} (CI is set, so nothing may be missing)", pytrace=False)
    pytest.skip(message)


def need(component: str, found: _Found | None, *, remedy: str) -> _Found:
    """Answer with what was found, or end the test as `missing` does."""
    if found is None:
        missing(component, reason="not found", remedy=remedy)
    return found


def java() -> Path:
    """The `java` to run: JAVA_HOME's if that is set, else the one on PATH; 17 or newer."""
    remedy = f"install Java {JAVA_VERSION_MIN} or newer, or set JAVA_HOME"
    path = need("java", _java_path(), remedy=remedy)
    version = _java_version(path)
    if version < JAVA_VERSION_MIN:
        missing("java", reason=f"version {version} at {path} is too old", remedy=remedy)
    return path


def maven() -> Path:
    """The `mvn` that fetches Apache Pulsar; needs Java too."""
    java()
    return need("maven", _on_path("mvn"), remedy="install Maven (mvn)")


def chromium() -> Path:
    """A browser that can run headless, for tests of the pages we write."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return need("chromium", _on_path(*names), remedy="install Chromium")


def prometheus() -> Path:
    """A Prometheus server, for queries that run against a daemon."""
    return need(
        "prometheus", _on_path("prometheus"), remedy="install Prometheus (Debian: prometheus)"
    )


def promtool() -> Path:
    """What checks metrics and rules, and runs rules over recorded series."""
    return need("promtool", _on_path("promtool"), remedy="install Prometheus (Debian: prometheus)")


def nginx() -> Path:
    """Nginx with `auth_request`, for gateways that ask a daemon."""
    found = _on_path("nginx") or next(filter(Path.is_file, [Path("/usr/sbin/nginx")]), None)
    return need("nginx", found, remedy="install nginx (Debian: nginx-light)")


def kubectl() -> Path:
    """The `kubectl` whose built-in kustomize renders the manifests."""
    return need("kubectl", _on_path("kubectl"), remedy="install kubectl")


def unshare() -> list[str]:
    """What starts a program as root of its own mounts, processes and (empty) network: Linux's namespaces."""
    flags = ["--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    command = ["unshare", *flags, "--mount-proc"]
    found = _on_path("unshare")
    done = found and subprocess.run(
        [*command, "true"], capture_output=True, timeout=300, check=False
    )
    if not done or done.returncode != 0:
        remedy = "run on Linux with unprivileged user namespaces, or as root"
        missing("namespaces", reason="`unshare` fails", remedy=remedy)
    return command


def embedded_broker() -> Path:
    """The binary of the embedded broker, from the `embedded` extra."""
    remedy = "pip install 'rgd[embedded]' (Linux x86_64 and macOS arm64 only)"
    spec = importlib.util.find_spec("pulsar_lite")
    folders = (spec.submodule_search_locations or ()) if spec else ()
    binaries = (Path(folder) / "bin" / "pulsar-lite" for folder in folders)
    return need("embedded broker", next(filter(Path.is_file, binaries), None), remedy=remedy)


def _on_path(*names: str) -> Path | None:
    found = next(filter(None, map(shutil.which, names)), None)
    return Path(found) if found else None


def _java_path() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    if home and (java_of_home := Path(home) / "bin" / "java").is_file():
        return java_of_home
    return _on_path("java")


@cache
def _java_version(java_path: Path) -> int:
    """The major version (17 for `"17.0.15"`, 8 for `"1.8.0"`); 0 where Java does not say one.

    macOS has a `java` on PATH without any Java behind it; that one answers no version.
    """
    try:
        done = subprocess.run(
            [java_path, "-version"], capture_output=True, text=True, timeout=300, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(version.group(1)) if version else 0
