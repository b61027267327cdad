"""Pulsar's rates and the limits they are here: what is put is shown again, and a limit never grows.

Not covered: where a limit is kept (tests/integration/http/test_policies.py) and what it does (tests of the core).
"""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.pulsar_admin.rate_forms import DISPATCH, PUBLISH
from rgd.core.policies.model import NOT_SET, UNLIMITED, LocalLimit, Rates
from rgd.core.units import MILLI

OTHER = LocalLimit(publish=Rates(1), dispatch=Rates(2), dispatch_period_s=3, dispatch_relative=True)


def put(body: Mapping[str, object], limit: LocalLimit = NOT_SET) -> LocalLimit:
    return DISPATCH.read(msgspec.json.encode(body))(limit)


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


def test_a_form_leaves_the_other_kind_alone() -> None:
    assert put({}, OTHER) == LocalLimit(Rates(1), UNLIMITED)
    assert PUBLISH.read(b"{}")(OTHER) == LocalLimit(UNLIMITED, Rates(2), 3, dispatch_relative=True)
    assert DISPATCH.unset(OTHER) == LocalLimit(publish=Rates(1))
    assert PUBLISH.unset(OTHER) == LocalLimit(None, Rates(2), 3, dispatch_relative=True)
