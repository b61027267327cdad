"""PIP-82's worked examples and doorman's golden case, in the core.

The same cases through `rgd shares --json` are in tests/unit/cli.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.shares.model import Row
from rgd.core.shares.registry import allocate
from rgd.core.units import Pair, to_milli, to_units

VECTORS = Path(__file__).parents[3] / "data" / "vectors" / "pip82_examples.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text())["cases"]
TOLERANCE = 0.01
FLOOR_PPM = 10_000


def shares_of(policy: str, quota: float, used: list[float], wanted: list[float]) -> list[float]:
    rows = [
        Row(f"broker-{place + 1}", Pair(to_milli(own)), Pair(to_milli(want)))
        for place, (own, want) in enumerate(zip(used, wanted, strict=True))
    ]
    shares = allocate(SharePolicyName(policy), Rates(to_milli(quota)), rows, floor_ppm=FLOOR_PPM)
    return [to_units(share.messages or 0) for share in shares]


def cases_with(*keys: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES if set(keys) <= set(case)]


@pytest.mark.parametrize("case", cases_with("used", "shares"))
def test_shares_of_the_worked_examples(case: dict[str, Any]) -> None:
    shares = shares_of(case["policy"], case["quota"], case["used"], case["used"])
    assert shares == pytest.approx(case["shares"], abs=TOLERANCE)


@pytest.mark.parametrize(
    "case",
    [param for place in (2, 3, 4) for param in cases_with("used", f"limit_of_broker_{place}")],
)
def test_stealing_raises_the_lowest(case: dict[str, Any]) -> None:
    shares = shares_of(case["policy"], case["quota"], case["used"], case["used"])
    for place, share in enumerate(shares, start=1):
        assert share == pytest.approx(case.get(f"limit_of_broker_{place}", share), abs=TOLERANCE)


@pytest.mark.parametrize("case", cases_with("start", "equilibrium"))
def test_from_the_start_to_the_equilibrium_in_the_rounds_it_may_take(case: dict[str, Any]) -> None:
    shares = [float(share) for share in case["start"]]
    gaps = []
    for _ in range(case.get("rounds_max", 20)):
        used = [min(share, want) for share, want in zip(shares, case["wanted"], strict=True)]
        shares = shares_of(case["policy"], case["quota"], used, case["wanted"])
        gaps.append(abs(shares[0] - case["equilibrium"][0]))
    assert shares == pytest.approx(case["equilibrium"], abs=TOLERANCE)
    # Step by step, never jagged: the distance never grows.
    assert gaps == sorted(gaps, reverse=True)


def test_every_vector_is_used() -> None:
    used = {
        param.id
        for keys in (("shares",), ("limit_of_broker_2",), ("limit_of_broker_4",), ("equilibrium",))
        for param in cases_with(*keys)
    } | {param.id for param in cases_with("sum_of_integer_shares")}
    assert used == {case["name"] for case in CASES}


def test_weights_pour_by_weight() -> None:
    rows = [Row("a", wanted=Pair(10**6)), Row("b", wanted=Pair(10**6), weight=3000)]
    shares = allocate(SharePolicyName.MAX_MIN, Rates(100_000), rows, floor_ppm=0)
    assert shares == (Rates(25_000), Rates(75_000))


def test_an_idle_broker_keeps_its_floor_beside_saturated_ones() -> None:
    assert shares_of("max-min", 90, [90, 90, 0], [90, 90, 0]) == [44.85, 44.85, 0.3]
