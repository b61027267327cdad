"""What a person decides: how numbers are read, and which rates are in force.

Not covered: files and bodies that carry the numbers (rgd.config, rgd.adapters.http).
"""

import pytest

from rgd.core.policies.model import Rate, rate_of
from rgd.core.units import MILLI, QUOTA_MAX


@pytest.mark.parametrize(
    ("number", "rate"),
    [
        pytest.param(None, None, id="absent"),
        pytest.param(0, None, id="zero"),
        pytest.param(-1, None, id="negative"),
        pytest.param(QUOTA_MAX, QUOTA_MAX * MILLI, id="most"),
        pytest.param(QUOTA_MAX + 1, None, id="above-most"),
        pytest.param(1.5, 1500, id="fraction"),
        pytest.param(0.0001, 1, id="never-rounded-to-zero"),
    ],
)
def test_a_number_is_read_as_pulsar_reads_it(number: float | None, rate: Rate) -> None:
    assert rate_of(number) == rate
