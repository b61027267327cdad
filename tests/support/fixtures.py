"""Fixtures for tests of every folder: the components that a run starts once and shares.

A fixture here starts its component when the first test asks for it, and ends the test with the
remedy where the component cannot be had (tests/support/components.py).
How Apache Pulsar is run is in tests/support/pulsar_standalone.py, tiers are in tests/support/tiers.py.
"""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.pulsar_standalone import PulsarStandalone
from tests.support.tiers import S3Server, running_s3, s3_environment


@pytest.fixture(scope="session")
def apache_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Generator[PulsarStandalone]:
    """The one Apache Pulsar of the run, started and serving.

    Tests share it, so each takes topics and namespaces of its own, and one that stops or kills it
    calls `restart` before it ends. It has no resource-usage transport: a test of that starts its own.
    """
    # It looks for topics that nobody uses every second, not every minute; it still lets them be for a
    # minute, where their namespace does not say otherwise.
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
