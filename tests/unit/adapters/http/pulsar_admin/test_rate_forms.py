"""Pulsar's rates and the limits they are here: what is put is shown again, and a limit never grows.

Not covered: where a limit is kept (tests/integration/http/test_policies.py) and what it does (tests of the core).
"""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.pulsar_admin.bodies import DispatchRate, PublishRate
from rgd.adapters.http.pulsar_admin.rate_forms import DISPATCH, PUBLISH, rate_over, units_over
from rgd.core.policies.model import NOT_SET, UNLIMITED, LocalLimit, Rates
from rgd.core.units import MILLI, QUOTA_MAX

OTHER = LocalLimit(publish=Rates(1), dispatch=Rates(2), dispatch_period_s=3, dispatch_relative=True)


def put(body: Mapping[str, object], limit: LocalLimit = NOT_SET) -> LocalLimit:
    return DISPATCH.read(msgspec.json.encode(body))(limit)


@given(units=st.integers(1, (1 << 31) - 1), period_s=st.integers(1, 1000))
def test_a_rate_over_up_to_1000_seconds_is_shown_as_it_was_put(units: int, period_s: int) -> None:
    rate = rate_over(units, period_s)

    assert units_over(rate, period_s) == units
    assert rate is not None
    assert rate * period_s <= units * MILLI


@given(units=st.integers(1, (1 << 31) - 1), period_s=st.integers(1, (1 << 31) - 1))
def test_a_rate_over_longer_is_shown_rounded_and_is_never_more_than_was_put(
    units: int, period_s: int
) -> None:
    body = {"dispatchThrottlingRateInMsg": units, "ratePeriodInSecond": period_s}
    if units * MILLI < period_s:
        with pytest.raises(BadBody, match=r"^dispatchThrottlingRateInMsg: expected at least 1 in"):
            put(body)
        return
    limit = put(body)
    shown = DISPATCH.shown(limit)

    assert limit.dispatch is not None
    assert limit.dispatch.messages is not None
    assert 0 < limit.dispatch.messages * period_s <= units * MILLI
    assert shown is not None
    assert abs(shown.dispatch_throttling_rate_in_msg - units) <= period_s / MILLI


@pytest.mark.parametrize("units", [None, 0, -1, -5, QUOTA_MAX + 1])
def test_zero_less_and_too_much_are_unlimited(units: int | None) -> None:
    assert rate_over(units) is None
    assert units_over(rate_over(units)) == -1


@pytest.mark.parametrize("period_s", [None, 0, -3, "", 1])
def test_a_period_of_less_than_a_second_is_one(period_s: object) -> None:
    limit = put({"dispatchThrottlingRateInByte": 5, "ratePeriodInSecond": period_s})

    assert limit == LocalLimit(dispatch=Rates(None, 5000))
    assert DISPATCH.shown(limit) == DispatchRate(-1, 5, False, 1)


def test_a_body_that_says_nothing_known_sets_no_limit_which_is_not_the_same_as_none_set() -> None:
    assert put({"unknown": {"deep": [1]}}) == LocalLimit(dispatch=UNLIMITED)
    assert PUBLISH.read(b"{}")(NOT_SET) == LocalLimit(publish=UNLIMITED)
    assert PUBLISH.shown(LocalLimit(publish=UNLIMITED)) == PublishRate(-1, -1)


def test_a_form_leaves_the_other_kind_alone() -> None:
    assert put({}, OTHER) == LocalLimit(Rates(1), UNLIMITED)
    assert PUBLISH.read(b"{}")(OTHER) == LocalLimit(UNLIMITED, Rates(2), 3, dispatch_relative=True)
    assert DISPATCH.unset(OTHER) == LocalLimit(publish=Rates(1))
    assert PUBLISH.unset(OTHER) == LocalLimit(None, Rates(2), 3, dispatch_relative=True)


def test_what_is_not_set_is_not_shown() -> None:
    assert DISPATCH.shown(LocalLimit(publish=UNLIMITED)) is None
    assert PUBLISH.shown(LocalLimit(dispatch=UNLIMITED)) is None


def test_messages_are_shown_as_far_as_an_int_goes() -> None:
    fast = Rates(10**13, 10**13)

    assert DISPATCH.shown(LocalLimit(dispatch=fast)) == DispatchRate(
        2_147_483_647,
        10_000_000_000,
        False,
        1,
    )
    assert PUBLISH.shown(LocalLimit(publish=fast)) == PublishRate(2_147_483_647, 10_000_000_000)
