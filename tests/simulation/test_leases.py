"""Callers that lease and crash at random, for a minute; `python -m sim.leases` runs an hour of a thousand.

Not covered: single laws (tests/property/test_leases.py).
"""

import json

import pytest

from sim.leases import Hour, main


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_minute_of_crashing_callers_keeps_every_law(seed: int) -> None:
    result = Hour(60, 60, seed).run()
    assert result.crashes > 5
    assert result.returned > 0
    assert result.lost > 0
    assert 0 <= result.room_least < result.share_total
    # Callers want some 1.5 times the quota, and crash: most of what flows is used all the same.
    assert result.utilisation > 0.75


def test_the_command_prints_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--callers", "5", "--seconds", "5", "--seed", "2", "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["callers"] == 5
    assert line["utilisation"] > 0
