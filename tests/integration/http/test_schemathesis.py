"""Schemathesis against a daemon that runs: no answer is a 5xx, and none is outside /openapi.json.

Valid and invalid calls of every operation, made by Schemathesis from the description alone; seeded, a few of
each. Two answers are known to differ, and checked by hand: Pulsar's empty bodies (below), and the header
Allow of a path that two operations share, which is not looked at. That each invalid call is refused is
not asked either: /admin/v2 is as lenient as Pulsar, and an item of an array is refused in its place.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from tests.support import components
from tests.support.served import served

pytestmark = [pytest.mark.embedded, pytest.mark.slow]

GROUPS = """\
groups:
  gold: {publish: {messages: 100, bytes: 100000}, dispatch: {messages: 100}}
attach:
  namespaces: {acme/orders: gold}
"""
#: Calls of each operation, valid and invalid.
EXAMPLES = 6


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    components.embedded_broker()
    with served(tmp_path_factory.mktemp("daemon"), GROUPS) as address:
        yield address


def body_conformance(ctx: Any, response: Any, case: Any) -> bool | None:
    """The body is described. Where Pulsar answers null with an empty body, so does `/admin/v2`."""
    if case.path.startswith("/admin/v2") and response.status_code == 200 and not response.content:
        return None
    return bool(checks.response_schema_conformance(ctx, response, case))


CHECKS: list[Callable[..., Any]] = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    body_conformance,
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_every_answer_is_described_and_none_is_a_server_error(
    url: str, mode: GenerationMode
) -> None:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    asked = 0
    with requests.Session() as session:
        for found in schema.get_all_operations():
            assert isinstance(found, Ok)
            operation = found.ok()

            @settings(
                max_examples=EXAMPLES,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def call(case: Any) -> None:
                nonlocal asked
                asked += 1
                case.call_and_validate(url, session, checks=CHECKS, timeout=60)

            with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
                # Of some operations no call is invalid.
                call()
    assert asked > 40 * EXAMPLES
