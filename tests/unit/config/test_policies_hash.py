"""The hash of a snapshot: the same for what says the same, another for everything else.

Not covered: who compares hashes (rgd.app).
"""

import subprocess
import sys
from pathlib import Path

import pytest

from rgd.core.policies.snapshot import EMPTY_SNAPSHOT
from rgd.wire.policies import policies_hash
from tests.unit.config.groups_file import EVERYTHING, SNAPSHOT, load


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
        EVERYTHING.replace("acme/orders: trial", "acme/other: trial"),
    ],
)
def test_every_change_is_seen(tmp_path: Path, changed: str) -> None:
    assert changed != EVERYTHING
    assert policies_hash(load(tmp_path, changed)) != policies_hash(SNAPSHOT)
