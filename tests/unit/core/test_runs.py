"""Places that are a run are read as a slice."""

import numpy as np
import pytest

from rgd.core.runs import run_of


@pytest.mark.parametrize(
    ("rows", "run"),
    [
        ([], None),
        ([7], slice(7, 8)),
        ([7, 8, 9], slice(7, 10)),
        ([7, 9], None),
        ([8, 7], None),
        ([9, 8, 7], None),
        ([7, 9, 8, 10], None),
    ],
)
def test_numbers_are_a_run_where_each_is_the_one_after_the_one_before(
    rows: list[int], run: slice | None
) -> None:
    numbers = np.array(rows, np.int64)
    found = run_of(numbers)
    assert found == run if run else found is numbers
