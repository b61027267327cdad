"""Fairness of cases that were reckoned by hand.

Not covered: the filling itself (tests/property/test_shares_columns.py).
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.analysis.fairness import max_min_parts
from rgd.analysis.row_columns import Floats
from tests.support.log_maker import Usage, log_of
from tests.unit.analysis.conftest import ReadLogs


def log(folder: Path, quota: float | None, *brokers: tuple[float, float]) -> None:
    """A log of ten equal rounds: what each broker admitted and wanted."""
    for number, (admitted, wanted) in enumerate(brokers, 1):
        log_of(folder, f"broker-{number:03}", (10, Usage("gold", admitted, wanted, quota=quota)))


@pytest.mark.slow
def test_one_starved_broker_of_a_hundred_shows_in_the_lowest_ratio_and_not_in_jain(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    log(tmp_path, 1000, *[(10, 20)] * 99, (0, 20))

    found = read_logs(tmp_path).fairness()

    assert found.jain[0] == pytest.approx(0.99)
    assert found.lowest[0] == 0.0


def test_a_dimension_that_is_short_but_cannot_be_used_up_is_not_judged() -> None:
    quota, wanted = np.array([[100.0, 1000.0]]), np.array([[[300.0, 600.0], [300.0, 600.0]]])

    parts = max_min_parts(quota, wanted)

    # A third of the bytes that are wanted go with the 100 messages: 200 + 200 of 1000.
    assert parts[0, :, 0].tolist() == [50.0, 50.0]
    assert parts[0, :, 1] == pytest.approx([100.0, 100.0], abs=0.01)


def in_messages(quota: Floats, wanted: Floats) -> Floats:
    """Parts where bytes are neither wanted nor limited."""
    quotas = np.stack([quota, np.full_like(quota, np.nan)], axis=-1)
    wants = np.stack([wanted, np.zeros_like(wanted)], axis=-1)
    return max_min_parts(quotas, wants)[:, :, 0]


@given(
    wanted=st.lists(st.lists(st.integers(0, 2000), min_size=3, max_size=3), min_size=1, max_size=8),
    quota=st.integers(0, 3000),
)
def test_parts_sum_to_what_can_be_served_and_nobody_is_below_the_level(
    wanted: list[list[int]], quota: int
) -> None:
    wishes = np.array(wanted, float)
    limits = np.full(len(wishes), float(quota))

    parts = in_messages(limits, wishes)

    served = np.minimum(limits, wishes.sum(axis=1))
    assert parts.sum(axis=1) == pytest.approx(served, abs=0.003)
    assert (parts <= wishes + 1e-9).all()
    for part, wish in zip(parts, wishes, strict=True):
        for own, want in zip(part, wish, strict=True):
            assert own >= min(want, part.max()) - 0.002
