"""Fixtures for tests of every folder: the components that a run starts once and shares, and disks that fail.

A fixture here starts its component when the first test asks for it, and ends the test with the
remedy where the component cannot be had (tests/support/components.py).
How Apache Pulsar is run is in tests/support/pulsar_standalone.py, tiers are in tests/support/tiers.py.
"""

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support import components
from tests.support.browser import running_browser
from tests.support.pulsar_standalone import PulsarStandalone
from tests.support.tiers import S3Server, running_s3, s3_environment

#: Size of the small disk, and of the file on it that a test removes to make room.
DISK_BYTES = 256 << 10
BALLAST_BYTES = 128 << 10


@pytest.fixture(scope="session")
def apache_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Generator[PulsarStandalone]:
    """The one Apache Pulsar of the run, started and serving.

    Tests share it, so each takes topics and namespaces of its own, and one that stops or kills it
    calls `restart` before it ends. It has no resource-usage transport: a test of that starts its own.
    """
    # It looks for topics that nobody uses every second, not every minute; it still lets them be where their
    # namespace does not say otherwise.
    settings = {
        "brokerDeleteInactiveTopicsFrequencySeconds": "1",
        "forceDeleteNamespaceAllowed": "true",
    }
    folder = tmp_path_factory.mktemp("apache-pulsar")
    with PulsarStandalone(folder, settings=settings) as pulsar:
        yield pulsar


@pytest.fixture(scope="session")
def s3_server() -> Generator[S3Server]:
    """The one S3 protocol server of the run; tests take buckets of their own."""
    yield from running_s3()


@pytest.fixture(params=["folder", "s3"])
def tier_place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[str]:
    """An empty tier of each kind."""
    if request.param == "folder":
        yield str(tmp_path / "tier")
        return
    server: S3Server = request.getfixturevalue("s3_server")
    with s3_environment(monkeypatch, server.port):
        yield f"s3://{server.make_bucket()}/below"


def _mount(folder: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        components.missing("small disk", reason="`mount` fails", remedy="run as root on Linux")


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk of `DISK_BYTES`, half of it taken by the file `ballast`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    _mount(folder, f"size={DISK_BYTES}")
    (folder / "ballast").write_bytes(bytes(BALLAST_BYTES))
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def read_only_folder(tmp_path: Path) -> Generator[Path]:
    """A folder in which nothing can be made: by its mode, or for root by its mount."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    if os.geteuid() == 0:
        _mount(folder, "ro")
        yield folder
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    else:
        folder.chmod(0o500)
        yield folder
        folder.chmod(0o700)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The one browser of the run; tests take tabs of their own (`tests.support.browser.new_tab`)."""
    with running_browser(tmp_path_factory.mktemp("browser") / "profile") as address:
        yield address
