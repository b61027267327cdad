"""`rgd serve` up to the daemon: options become settings, and every fault is told before anything opens.

The daemon itself is not started here; tests/e2e starts it as a process.
"""

from pathlib import Path
from typing import Any

import pytest

from rgd.config.settings import Settings
from tests.unit.cli.conftest import Rgd


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the daemon would be started with."""
    from rgd.app.planes import serving

    calls: list[dict[str, Any]] = []

    def serve(settings: Settings, **options: Any) -> None:
        calls.append({"settings": settings, **options})
        options["say"]("rgd broker=east")

    monkeypatch.setattr(serving, "serve", serve)
    for name in ("RGD_CLUSTER", "RGD_BROKER__NAME"):
        monkeypatch.delenv(name, raising=False)
    return calls


def test_options_are_the_strongest_source(
    rgd: Rgd, served: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "rgd.yaml"
    config.write_text("broker: {name: file}\ncluster: file\nexchange: {round_ms: 500}")
    monkeypatch.setenv("RGD_BROKER__NAME", "environment")
    monkeypatch.setenv("RGD_CLUSTER", "environment")
    outcome = rgd(
        "serve", "--config", config, "--broker", "option", "--listen", "127.0.0.1:0",
        "--exchange", "pulsar://127.0.0.1:6650", "--groups", "g.yaml", "--log-dir", "logs",
    )  # fmt: skip
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "rgd broker=east\n"
    [call] = served
    settings = call["settings"]
    assert settings.broker.name == "option"
    assert settings.cluster == "environment"
    assert settings.exchange.round_ms == 500
    assert settings.exchange.url == "pulsar://127.0.0.1:6650"
    assert settings.http.address == ("127.0.0.1", 0)
    assert settings.policies.file == Path("g.yaml")
    assert settings.log.dir == Path("logs")
    assert call["insecure"] is False


def test_insecure_reaches_the_daemon(rgd: Rgd, served: list[dict[str, Any]]) -> None:
    assert rgd("serve", "--listen", "0.0.0.0:1").code == 2
    assert served == []
    assert rgd("serve", "--listen", "0.0.0.0:1", "--insecure").code == 0
    assert served[0]["insecure"] is True


def test_every_fault_is_reported_and_nothing_is_started(
    rgd: Rgd, served: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RGD_EXCHANGE__ROUND", "1")
    outcome = rgd("serve", "--listen", "nowhere", "--broker", "a b", "--exchange", "http://x")
    assert outcome.code == 2
    assert served == []
    for key in ("RGD_EXCHANGE__ROUND", "http.listen", "broker.name", "exchange.url"):
        assert key in outcome.err
