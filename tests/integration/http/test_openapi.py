"""/openapi.json describes exactly the calls there are.

That answers are what it says is checked by every test of this folder (door.py). Not covered: whether
other programs like the document.
"""

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # ships no types

from tests.integration.http.door import Door

OPERATIONS = {"get", "put", "post", "delete", "head", "options", "patch", "trace"}


def walk(value: Any) -> Any:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from walk(part)
    elif isinstance(value, list):
        for part in value:
            yield from walk(part)


async def described(door: Door) -> Any:
    return (await door.call("GET", "/openapi.json")).json


#: As which methods a call of every method is described.
ANY = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


async def test_it_describes_exactly_what_the_router_answers(door: Door) -> None:
    document = await described(door)

    listed = {
        (operation.upper(), path)
        for path, operations in document["paths"].items()
        for operation in operations
    }
    for method, path in listed:
        # HEAD goes wherever GET goes, which the description says once, in words.
        for asked in (method, "HEAD") if method == "GET" else (method,):
            found = door.server.routes.find(asked, path)
            assert found.route.path.replace(":path}", "}") == path
    assert len(listed) == sum(len(ANY) if one.method == "*" else 1 for one in door.server.endpoints)
    assert "HEAD goes wherever GET goes" in document["info"]["description"]


async def test_it_is_openapi_3_1(door: Door) -> None:
    document = await described(door)

    assert document["openapi"] == "3.1.0"
    assert {"title", "version"} <= set(document["info"])
    operations = [
        (path, name, operation)
        for path, item in document["paths"].items()
        for name, operation in item.items()
    ]
    assert {name for _, name, _ in operations} <= OPERATIONS
    ids = [operation["operationId"] for _, _, operation in operations]
    assert len(set(ids)) == len(ids)
    named = {name for *_, one in operations for lacks in one["security"] for name in lacks}
    assert named == set(document["components"]["securitySchemes"]) == {"bearer"}
    for path, _, operation in operations:
        parameters = [
            parameter["name"]
            for parameter in operation.get("parameters", [])
            if parameter["in"] == "path" and parameter["required"] is True
        ]
        assert parameters == re.findall(r"\{(\w+)\}", path)
        for status, response in operation["responses"].items():
            assert re.fullmatch(r"[1-5]\d\d", status)
            assert response["description"]


@pytest.mark.slow
async def test_every_reference_leads_somewhere_and_every_schema_is_one(door: Door) -> None:
    document = await described(door)
    schemas = document["components"]["schemas"]

    references = {part["$ref"] for part in walk(document) if "$ref" in part}
    known = {f"#/components/schemas/{name}" for name in schemas}
    assert references == known
    for part in walk(document):
        if "schema" in part:
            Draft202012Validator.check_schema(part["schema"])
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)


async def test_the_body_of_a_question_is_described_with_its_bounds(door: Door) -> None:
    document = await described(door)

    fields = document["components"]["schemas"]["AcquireBody"]
    assert fields["additionalProperties"] is False
    assert fields["properties"]["messages"]["minimum"] == 0
    assert fields["properties"]["messages"]["maximum"] == 2**63 - 1
