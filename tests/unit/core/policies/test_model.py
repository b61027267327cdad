"""What a person decides: how numbers are read, and which rates are in force.

Not covered: files and bodies that carry the numbers (rgd.config, rgd.adapters.http).
"""

import pytest

from rgd.core.policies.model import (
    BLOCKED,
    NOT_SET,
    UNLIMITED,
    BacklogQuota,
    BacklogQuotas,
    BacklogType,
    Group,
    Limit,
    LocalLimit,
    Rate,
    Rates,
    rate_of,
)
from rgd.core.units import MILLI, QUOTA_MAX, Dimension, Kind, to_units

LIMIT = Limit(publish=Rates(1, 2), dispatch=Rates(3, 4))


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


def test_a_rate_is_shown_in_units() -> None:
    assert to_units(1500) == 1.5


def test_rates_are_found_by_kind_and_dimension() -> None:
    found = [LIMIT.of(kind).of(dimension) for kind in Kind for dimension in Dimension]
    assert found == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("rates", "is_unlimited"),
    [(UNLIMITED, True), (Rates(1, None), False), (Rates(None, 1), False), (BLOCKED, False)],
)
def test_rates_are_unlimited_where_nothing_is_limited(rates: Rates, is_unlimited: bool) -> None:
    assert rates.is_unlimited is is_unlimited


def test_a_block_stands_above_any_quota() -> None:
    assert Group("gold", LIMIT).rates(Kind.DISPATCH) == Rates(3, 4)
    assert Group("gold", LIMIT, blocked=True).rates(Kind.DISPATCH) == Rates(0, 0)
    assert Group("gold", blocked=True).rates(Kind.PUBLISH) == Rates(0, 0)


@pytest.mark.parametrize(
    ("limit", "publish", "dispatch"),
    [
        pytest.param(NOT_SET, None, None, id="not-set"),
        pytest.param(LocalLimit(UNLIMITED, Rates(5)), UNLIMITED, Rates(5), id="set"),
        pytest.param(
            LocalLimit(Rates(5), Rates(5), dispatch_relative=True),
            Rates(5),
            UNLIMITED,
            id="a-relative-rate-is-not-enforced",
        ),
        pytest.param(LocalLimit(dispatch_relative=True), None, None, id="relative-to-nothing"),
        pytest.param(LocalLimit(None, Rates(5), 60), None, Rates(5), id="a-period-changes-nothing"),
    ],
)
def test_a_local_limit_tells_not_set_from_set_to_no_limit(
    limit: LocalLimit, publish: Rates | None, dispatch: Rates | None
) -> None:
    assert (limit.of(Kind.PUBLISH), limit.of(Kind.DISPATCH)) == (publish, dispatch)


def test_backlog_quotas_are_found_by_what_they_measure() -> None:
    quotas = BacklogQuotas(BacklogQuota(size_bytes=5))
    assert quotas.of(BacklogType.SIZE) == BacklogQuota(size_bytes=5)
    assert quotas.of(BacklogType.AGE) is None
