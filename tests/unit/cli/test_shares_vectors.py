"""PIP-82's worked examples and doorman's golden case, as a script meets them: `rgd shares --json`.

The same cases in the core are in tests/unit/core/shares/test_vectors.py.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Rgd

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "pip82_examples.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text())["cases"]
TOLERANCE = 0.01


def shares_of(rgd: Rgd, policy: str, quota: float, option: str, rates: Sequence[float]) -> Any:
    outcome = rgd(
        "shares", "--json", "--policy", policy, "--quota", str(quota), option, *map(str, rates)
    )
    assert outcome.code == 0, outcome.err
    answer = json.loads(outcome.out)
    assert set(answer) == {"policy", "quota", "shares", "limits"}
    assert sum(answer["limits"]) == pytest.approx(sum(answer["shares"]), abs=TOLERANCE)
    return answer


def cases_with(*keys: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES if set(keys) <= set(case)]


@pytest.mark.parametrize("case", cases_with("used"))
def test_shares_over_what_was_used(rgd: Rgd, case: dict[str, Any]) -> None:
    answer = shares_of(rgd, case["policy"], case["quota"], "--admitted", case["used"])
    for place, share in enumerate(answer["shares"]):
        expected = case.get("shares", {place: share})[place]
        assert share == pytest.approx(
            case.get(f"limit_of_broker_{place + 1}", expected), abs=TOLERANCE
        )


@pytest.mark.parametrize("case", cases_with("start", "wanted"))
def test_no_more_rounds_than_the_case_allows(rgd: Rgd, case: dict[str, Any]) -> None:
    option = "--wanted" if case["policy"] == "max-min" else "--admitted"
    shares, answer = case["start"], {}
    for _ in range(case.get("rounds_max", 20)):
        admitted = [min(share, want) for share, want in zip(shares, case["wanted"], strict=True)]
        rates = case["wanted"] if option == "--wanted" else admitted
        answer = shares_of(rgd, case["policy"], case["quota"], option, rates)
        shares = answer["shares"]
    if "equilibrium" in case:
        assert shares == pytest.approx(case["equilibrium"], abs=TOLERANCE)
    if "sum_of_integer_shares" in case:
        assert sum(answer["limits"]) == case["sum_of_integer_shares"]


def test_doormans_golden_case(rgd: Rgd) -> None:
    answer = shares_of(rgd, "max-min", 120, "--wanted", [1000, 50, 10])
    assert answer["shares"] == [60.0, 50.0, 10.0]
    assert answer["limits"] == [60, 50, 10]


def test_every_vector_is_used() -> None:
    used = {*(param.id for param in cases_with("used"))}
    used |= {param.id for param in cases_with("start", "wanted")}
    assert used == {case["name"] for case in CASES}
