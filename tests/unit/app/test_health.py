"""What is said of a daemon whose name is another's, whose peers have other policies, or that reaches no exchange.

Not covered: the rest of what is degraded (tests/integration/http/test_probes.py, tests/e2e).
"""

from pathlib import Path

import pytest

from rgd.app.daemon import Agreeing
from rgd.app.health import health
from rgd.app.telemetry import Telemetry
from rgd.core.broker.broker import Broker
from rgd.core.broker.events import MessageReceived, Started, Woken
from rgd.core.broker.membership import Membership
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Report, Sender
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Nanos
from tests.support.running_daemon import ROUND_NS, memory_daemon

START = Nanos(0)


def shown(daemon: Agreeing) -> dict[str, float]:
    """Its figures without labels."""
    return {one.name: one.value for one in Telemetry(daemon).samples()}


def test_peers_with_other_policies_are_named_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = memory_daemon(tmp_path, PolicySnapshot())
    monkeypatch.setattr(Membership, "differing", {"b3", "b2"})
    assert "policies differ from those of b2, b3" in daemon.health().degraded
    assert shown(daemon)["rgd_policy_hash_conflict"] == 1


def test_one_that_never_reached_the_exchange_is_isolated(tmp_path: Path) -> None:
    daemon = memory_daemon(tmp_path, PolicySnapshot())
    at, isolated = daemon.now(), []
    for event in (Started(at), Woken(Nanos(at + 3 * ROUND_NS))):
        daemon._handle(event)
        isolated.append(shown(daemon)["rgd_isolated"])
    assert isolated == [0, 1]
    assert "exchange never reached: granting from the floor" in daemon.health().degraded


def test_one_whose_name_is_anothers_is_not_ready_and_says_why() -> None:
    broker = Broker(BrokerSettings(Sender("b1", 1)), START)
    broker.handle(Started(START))
    second = Report(Sender("b1", 9), 1, 1, rival=1)
    broker.handle(MessageReceived(START, second))
    shown = health(broker, is_draining=False, notes=("policies: old",))
    assert not shown.ready
    taken, note = shown.degraded
    assert "name conflict: another daemon speaks for broker 'b1'" in taken
    assert note == "policies: old"
