"""Which call a path and a method find."""

from contextlib import suppress

import pytest

from rgd.adapters.http.errors import CallError
from rgd.adapters.http.route_table import Route, RouteTable
from tests.support.work import calls_of

CALLS = (
    "GET /a",
    "PUT /a/{x}",
    "GET /a/b",
    "DELETE /a/{x}/{y}",
    "GET /a/{x}/c",
    "* /d/{rest:path}",
)
TABLE = RouteTable(
    Route(method, path, None, is_probe=False, takes_body=False, takes_query=False)
    for method, path in (call.split(" ") for call in CALLS)
)


@pytest.mark.parametrize(
    ("method", "path", "call", "parts"),
    [
        ("HEAD", "/a", "GET /a", {}),
        ("GET", "/%61", "GET /a", {}),
        ("GET", "/a/b", "GET /a/b", {}),
        ("PUT", "/a/b", "PUT /a/{x}", {"x": "b"}),
        ("PUT", "/a/{x}", "PUT /a/{x}", {"x": "{x}"}),
        ("PUT", "/a/b%2Fc%25+", "PUT /a/{x}", {"x": "b/c%+"}),
        ("GET", "/a/1/c", "GET /a/{x}/c", {"x": "1"}),
        ("DELETE", "/a/1/c", "DELETE /a/{x}/{y}", {"x": "1", "y": "c"}),
        ("GET", "/d/{rest:path}", "* /d/{rest:path}", {}),
        ("GET", "/d/", "* /d/{rest:path}", {}),
    ],
)
def test_a_call_is_found(method: str, path: str, call: str, parts: dict[str, str]) -> None:
    found = TABLE.find(method, path)
    assert f"{found.route.method} {found.route.path}" == call
    assert found.parts == parts


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//c", "/A", "/a/b/", "/d", "/"])
def test_a_path_that_no_call_has(path: str) -> None:
    with pytest.raises(CallError, match="no such path"):
        TABLE.find("GET", path)


@pytest.mark.parametrize("begin", ["/d", "/a/x"])
def test_many_slashes_cost_no_more_than_one_long_name(begin: str) -> None:
    def work(target: str) -> int:
        def find() -> None:
            with suppress(CallError):
                TABLE.find("DELETE", target)

        return calls_of(find)

    assert work(begin + "/%41" * 2000) < work("/a/" + "%2F%41" * 2000)
