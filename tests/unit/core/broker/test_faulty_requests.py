"""A request in which something raises takes no tokens. Not covered: what a daemon does about it (tests/unit/app/test_containment.py)."""

from typing import Any

import pytest

from rgd.core.buckets.decision import Request
from rgd.core.units import Dimension
from tests.unit.core.broker.desk import Desk
from tests.unit.core.values import TOPIC, key, ms


def boom(*_args: Any, **_kwargs: Any) -> Any:
    raise OverflowError("a number too large")


@pytest.mark.parametrize("is_partial", [False, True])
def test_a_request_that_raises_takes_nothing(
    live: Desk, monkeypatch: pytest.MonkeyPatch, *, is_partial: bool
) -> None:
    live.share()
    state = live.broker.limiter.state(key())
    assert state is not None
    before = state.tokens(Dimension.MESSAGES, ms(2100))
    method = "refuse" if is_partial else "note"
    monkeypatch.setattr(type(state.counters), method, boom)
    # More than there is, where a part is welcome: granted in part, and the rest counted as refused.
    request = Request(
        messages=900 if is_partial else 3, group="gold", topic=TOPIC, partial=is_partial
    )
    with pytest.raises(OverflowError):
        live.broker.limiter.acquire(request, ms(2100))
    assert state.tokens(Dimension.MESSAGES, ms(2100)) == before
