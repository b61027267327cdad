"""What a caller sent, a megabyte of it, is refused with a sentence of readable length."""

import pytest

from rgd.adapters.http.shown import REASON_CHARS_MAX
from tests.integration.http.door import Door

LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/acquire", {LONG: 1}),
        ("POST", "/v1/acquire", [{LONG: 1}]),
        ("POST", "/v1/acquire", [{"x" * 30_000: 1}] * 3),
        ("POST", "/v1/acquire", {"tenant": LONG, "namespace": "orders"}),
        ("POST", "/v1/acquire", {"tenant": "a" * 30_000, "namespace": "orders"}),
        ("POST", "/v1/acquire", {"group": "gold", "topic": "t" * 30_000}),
        ("POST", "/v1/acquire", {"group": "gold", "kind": "k" * 30_000}),
        ("POST", "/v1/acquire", b'{"messages":1' + b"0" * 400 + b"}"),
        ("POST", "/v1/acquire", b'{"messages":1' + b"0" * 30_000 + b"}"),
        ("POST", "/v1/acquire", b'{"messages":1e999}'),
        ("POST", "/v1/acquire", b'{"bytes":Infinity}'),
        ("POST", "/v1/acquire", b'{"group":"gold","group":"trial"}'),
        ("POST", "/v1/acquire", b'{"group":"\\ud800"}'),
        ("POST", "/v1/acquire", b'{"group":"a\\u0000"}'),
        ("PUT", "/v1/groups/" + "g" * 4000, {}),
        ("PUT", "/v1/groups/gold", {"publish": {"y" * 30_000: 1}}),
        ("PUT", "/v1/groups/gold", b'{"publish":{"messages":1' + b"0" * 400 + b"}}"),
        ("PUT", "/v1/groups/gold", b'{"publish":{"messages":5,"messages":6}}'),
        ("PATCH", "/v1/groups/gold", {LONG: 1}),
        ("GET", "/v1/explain?" + "z" * 4000 + "=1&tenant=a&namespace=b", None),
        ("GET", "/v1/explain?tenant=" + "z" * 4000 + "&namespace=b", None),
        ("GET", "/v1/groups?" + "z" * 4000 + "=1", None),
        ("PUT", "/admin/v2/resourcegroups/gold", {"publishRateInMsgs": "7" * 30_000}),
        ("PUT", "/admin/v2/resourcegroups/gold", {"publishRateInMsgs": 1e300}),
        ("PUT", "/admin/v2/resourcegroups/gold", b'{"publishRateInMsgs":1' + b"0" * 400 + b"}"),
        ("PUT", "/admin/v2/resourcegroups/gold", b'{"publishRateInMsgs":1' + b"0" * 9000 + b"}"),
        ("PUT", "/admin/v2/resourcegroups/gold", {"publishRateInMsgs": {"x": "y" * 30_000}}),
        ("PUT", "/admin/v2/resourcegroups/gold", {LONG: 1}),
        ("POST", "/admin/v2/namespaces/acme/orders/backlogQuota", {"policy": "p" * 30_000}),
        ("GET", "/admin/v2/namespaces/" + "n" * 4000, None),
    ],
)
async def test_nothing_is_quoted_at_length(
    door: Door, method: str, path: str, body: object
) -> None:
    answer = await door.call(method, path, body)

    assert answer.status in {200, 400, 412, 413}
    reasons = [answer.json] if isinstance(answer.json, dict) else answer.json
    assert reasons
    for told in reasons:
        assert len(told["reason"]) <= REASON_CHARS_MAX + 3
    assert door.daemon.asked == []
