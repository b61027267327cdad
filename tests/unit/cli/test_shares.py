"""`rgd shares`: options with many values, the contract of --json, whole limits that sum up.

The policies themselves are the core's; here PIP-82's cases go through the command as a script would.
"""

import json

import pytest

from rgd.cli.shares import whole
from tests.support.cases import cases
from tests.unit.cli.conftest import Rgd

CASES = {
    "residual": ("residual", 100, "--admitted", [10, 50, 30], [20, 60, 40]),
    "proportional": ("proportional", 100, "--admitted", [10, 50, 30], [11.111, 55.556, 33.333]),
    "steal": ("steal", 100, "--admitted", [80, 20], [80, 50]),
    "doorman": ("max-min", 120, "--wanted", [1000, 50, 10], [60, 50, 10]),
}


@cases("policy, quota, flag, rates, shares", CASES)
def test_json_has_the_shares_in_the_order_given(
    rgd: Rgd, policy: str, quota: int, flag: str, rates: list[int], shares: list[float]
) -> None:
    outcome = rgd("shares", "--policy", policy, "--quota", quota, flag, *rates, "--json")
    assert outcome.code == 0
    told = json.loads(outcome.out)
    assert list(told) == ["policy", "quota", "shares", "limits"]
    assert (told["policy"], told["quota"]) == (policy, quota)
    assert told["shares"] == pytest.approx(shares, abs=0.01)
    assert all(type(limit) is int for limit in told["limits"])
    assert sum(told["limits"]) == round(sum(told["shares"]))


TWO_DIMENSIONS = (
    "shares", "--floor", 0, "--quota", 100, "--wanted", 100, 50,
    "--quota-bytes", 1000, "--wanted-bytes", 500, 1000,
)  # fmt: skip


def test_pips_policies_share_bytes_by_themselves(rgd: Rgd) -> None:
    outcome = rgd(
        "shares", "--policy", "proportional", "--quota", 100, "--admitted", 75, 25,
        "--quota-bytes", 1e6, "--admitted-bytes", 1, 4, "--json",
    )  # fmt: skip
    told = json.loads(outcome.out)
    assert (told["shares"], told["bytes"]["shares"]) == ([75, 25], [200_000, 800_000])


def test_the_table_shows_both_dimensions(rgd: Rgd) -> None:
    outcome = rgd(*TWO_DIMENSIONS)
    assert outcome.code == 0
    assert "admitted" not in outcome.out  # It was not given.
    for text in ("quota 100.0 messages and 1,000.0 bytes", "share bytes", "66.667", "666.667"):
        assert text in outcome.out


def test_a_table_is_for_people_and_is_never_cut(rgd: Rgd) -> None:
    outcome = rgd(
        "shares",
        "--quota",
        "1e15",
        "--wanted",
        "1e15",
        "3e15",
        "--brokers",
        "[b]east[/b]",
        "w" * 200,
    )
    assert outcome.code == 0
    for text in ("[b]east[/b]", "w" * 200, "500,000,000,000,000.000", "1,000,000,000,000,000"):
        assert text in outcome.out


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--quota", "0", "--wanted", "1"], "--quota: expected a number from 0.001 to 9e+15, got 0"),
        (["--quota", "nan", "--wanted", "1"], "--quota: expected a number"),
        (["--quota", "1", "--wanted", "-5", "x", "inf"], "--wanted: expected numbers from 0 to 9e+15, got -5, x, inf"),
        (["--quota", "1", "--wanted", "1", "2", "--admitted", "1"], "--admitted: expected 2 values, one for each broker, got 1"),
        (["--quota", "1", "--wanted", "1", "--weights", "0"], "--weights: expected numbers from 0.001 to 1e+06, got 0"),
        (["--quota", "1", "--wanted", "1", "2", "--brokers", "a", "a"], "--brokers: expected names that differ"),
        (["--quota", "1", "--wanted", "1", "--floor", "2"], "--floor: expected a number from 0 to 1, got 2"),
        (["--quota", "1"], "--wanted: expected a number for each broker, here or in --admitted"),
        (["--quota", "1", "--wanted", "1", "--quota-bytes", "5"], "--wanted-bytes: expected a number for each broker, here or in --admitted-bytes"),
        (["--quota", "1", "--wanted", "1", "--admitted-bytes", "5"], "--quota-bytes: expected a quota in bytes, as --admitted-bytes is given"),
        (["--quota", "1", "--wanted", "1", "--quota-bytes", "5", "--wanted-bytes", "5", "6"], "--wanted-bytes: expected 1 values, one for each broker, got 2"),
        (["--quota", "1", "--wanted", "--json"], "--wanted: expected numbers from 0 to 9e+15, got --json"),
    ],
)  # fmt: skip
def test_a_wrong_number_is_reported_with_its_option(
    rgd: Rgd, arguments: list[str], fault: str
) -> None:
    outcome = rgd("shares", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"rgd: command line: {fault}" in outcome.err


@pytest.mark.parametrize("arguments", [["--policy", "fair"], ["--wanted"], ["5"], ["--wants", "5"]])
def test_what_the_parser_refuses_is_2(rgd: Rgd, arguments: list[str]) -> None:
    assert rgd("shares", "--quota", "1", *arguments).code == 2


def test_the_largest_fractions_are_rounded_up() -> None:
    assert whole([1_900, 1_050, 1_050]) == [2, 1, 1]
    assert whole([500, 500]) == [1, 0]
    assert whole([]) == []
