"""What middleware takes for the size of a request."""

import pytest

from rgd.client.web_answers import _size_of


@pytest.mark.parametrize("told", ["700", "700 ", "700\t", "0" * 30 + "700", "0" * 5000 + "700"])
def test_a_size_counts_as_a_server_reads_it(told: str) -> None:
    assert _size_of(told) == _size_of(told.encode()) == 700
