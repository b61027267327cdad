"""The hash of a snapshot: the same for what says the same, another for everything else.

Not covered: who compares hashes (rgd.app).
"""

import subprocess
import sys
from pathlib import Path

import pytest

from rgd.core.policies.model import Limits, LocalLimit, Rates
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.wire.policies import policies_hash
from tests.unit.config.groups_file import EVERYTHING, SNAPSHOT, TOPIC, load


def test_it_is_the_same_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "groups.yaml"
    path.write_text(EVERYTHING)
    script = (
        "import sys, pathlib; from rgd.config.groups import load_groups;"
        "from rgd.wire.policies import policies_hash;"
        "print(policies_hash(load_groups(pathlib.Path(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == policies_hash(SNAPSHOT)


def test_it_is_never_zero_and_fits_a_signed_64_bit_number() -> None:
    assert 0 < policies_hash(EMPTY_SNAPSHOT) < 1 << 63


@pytest.mark.parametrize(
    "changed",
    [
        EVERYTHING.replace("messages: 1000", "messages: 1001"),
        EVERYTHING.replace("dispatch: {messages: 2000}", "dispatch: {bytes: 2000}"),
        EVERYTHING.replace("policy: max-min", "policy: residual"),
        EVERYTHING.replace("policy: max-min", "policy: max-min, topic_split: even"),
        EVERYTHING.replace("blocked: false", "blocked: true"),
        EVERYTHING.replace("shadow: true", "shadow: false"),
        EVERYTHING.replace("soft: 0.75", "soft: 0.7"),
        EVERYTHING.replace("acme: gold", "acme: trial"),
        EVERYTHING.replace("acme/orders: trial", "acme/other: trial"),
        EVERYTHING.replace('eu": gold', 'us": gold'),
        EVERYTHING.replace("bytes: 1e8", "bytes: 1e9"),
        EVERYTHING.replace("messages: 20}", "messages: 21}"),
        EVERYTHING.replace("audit", "audit2"),
        EVERYTHING.replace("messages: 0.5", "messages: 0.6"),
        EVERYTHING.replace("messages: 30}", "messages: 31}"),
        EVERYTHING.replace(", dispatch: {}}", "}"),
        EVERYTHING.replace("{messages: 6}", "{messages: 60}"),
        EVERYTHING.replace("{bytes: 7}", "{bytes: 70}"),
        EVERYTHING.replace(
            "namespace_subscriptions: {acme/orders", "namespace_subscriptions: {acme/o"
        ),
        EVERYTHING.replace("limit_bytes: 1e9", "limit_bytes: 2e9"),
        EVERYTHING.replace("limit_s: 3600", "limit_s: 3601"),
        EVERYTHING.replace("producer_exception", "producer_request_hold"),
        EVERYTHING + '    "persistent://acme/orders/us": {age: {}}\n',
    ],
)
def test_every_change_is_seen(tmp_path: Path, changed: str) -> None:
    assert changed != EVERYTHING
    assert policies_hash(load(tmp_path, changed)) != policies_hash(SNAPSHOT)


@pytest.mark.parametrize(
    "limit",
    [
        LocalLimit(dispatch=Rates(5), dispatch_period_s=2),
        LocalLimit(dispatch=Rates(5), dispatch_relative=True),
    ],
)
def test_values_that_only_a_table_can_have_count_too(limit: LocalLimit) -> None:
    plain = PolicySnapshot(limits=Limits(topics={TOPIC: LocalLimit(dispatch=Rates(5))}))
    assert policies_hash(PolicySnapshot(limits=Limits(topics={TOPIC: limit}))) != policies_hash(
        plain
    )
