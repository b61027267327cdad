"""Amounts as people write and read them."""

import pytest

from rgd.cli.amounts import parse_rate
from rgd.core.units import COUNT_MAX


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("500", 500),
        ("0.5", 0.5),
        ("5M", 5_000_000),
        ("5MB", 5_000_000),
        ("1 Gi", 2**30),
        ("1.5GiB", 1.5 * 2**30),
        ("2k", 2000),
        ("2K/s", 2000),
        ("unlimited", None),
        ("None", None),
    ],
)
def test_what_a_person_writes(text: str, units: float | None) -> None:
    assert parse_rate(text) == units


@pytest.mark.parametrize("text", ["5M", "1e3", "0.5k"])
def test_whole_numbers_stay_whole(text: str) -> None:
    assert isinstance(parse_rate(text), int)


@pytest.mark.parametrize(
    "text",
    ["", "0", "0.0", "0k", "-5", "five", "5m", "5i", "1e99", "nan", "inf", "5 5", "1_000", "٣"],
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        parse_rate(text)


def test_more_than_can_be_counted_is_refused() -> None:
    assert parse_rate("9e18") == 9 * 10**18
    with pytest.raises(ValueError, match=r"^"):
        parse_rate(str(COUNT_MAX * 2))
