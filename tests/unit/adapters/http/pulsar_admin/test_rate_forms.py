"""Pulsar's rates and the limits they are here: what is put is shown again, and a limit never grows.

Not covered: where a limit is kept (tests/integration/http/test_policies.py) and what it does (tests of the core).
"""

from collections.abc import Mapping

import msgspec

from rgd.adapters.http.pulsar_admin.rate_forms import DISPATCH, PUBLISH
from rgd.core.policies.model import NOT_SET, UNLIMITED, LocalLimit, Rates

OTHER = LocalLimit(publish=Rates(1), dispatch=Rates(2), dispatch_period_s=3, dispatch_relative=True)


def put(body: Mapping[str, object], limit: LocalLimit = NOT_SET) -> LocalLimit:
    return DISPATCH.read(msgspec.json.encode(body))(limit)


def test_a_form_leaves_the_other_kind_alone() -> None:
    assert put({}, OTHER) == LocalLimit(Rates(1), UNLIMITED)
    assert PUBLISH.read(b"{}")(OTHER) == LocalLimit(UNLIMITED, Rates(2), 3, dispatch_relative=True)
    assert DISPATCH.unset(OTHER) == LocalLimit(publish=Rates(1))
    assert PUBLISH.unset(OTHER) == LocalLimit(None, Rates(2), 3, dispatch_relative=True)
