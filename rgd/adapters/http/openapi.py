"""`/openapi.json`: the calls of `plane` as an OpenAPI 3.1 document.

Law: it describes exactly the calls there are and exactly what they answer; the
schemas are made from the types that bodies are read into and written from. A
test asks the running server and holds every answer against this document.
"""

import re
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any, Final, get_args, get_origin

import msgspec

from rgd.adapters.http.answers import Reason
from rgd.adapters.http.endpoint import Endpoint, ResponseSpec
from rgd.adapters.http.reply import JSON
from rgd.core.policies.names import NAME_MAX
from rgd.version import __version__

_REFERENCE: Final = "#/components/schemas/{name}"
_PATH_PART: Final = re.compile(r"\{(\w+)\}")

#: What the parts of a path may be, by name; any other is a string.
_ENTITY: Final = {"pattern": "^[-=:._0-9A-Za-z]+$", "minLength": 1, "maxLength": NAME_MAX}
_PART_SCHEMAS: Final = dict.fromkeys(("tenant", "namespace", "group", "cursor"), _ENTITY)

_DESCRIPTION: Final = (
    "Asks, sees and changes the resource groups of one broker's daemon. Errors are "
    '`{"reason"}`. `/v1` is strict; `/admin/v2` is as lenient as Apache Pulsar. '
    "Where Pulsar answers null with an empty body, so does `/admin/v2`. "
    "HEAD goes wherever GET goes. Where tokens are set, a call needs one with the "
    "scope in its `security`; a token with `admin` may do everything."
)

#: What a status says, where a call says no more of it.
_WHEN: Final = {
    200: "Done, or what was asked for.",
    201: "The same, and it is new.",
    204: "Done and in force here.",
    400: "The path, the query or the body is malformed; the reason names what is.",
    401: "No token, or an unknown one.",
    403: "The token lacks the scope.",
    404: "There is nothing of this name.",
    408: "The body did not come in time.",
    409: "Something is in the way: the policies are a file's or a stock Pulsar's, or it is in use.",
    412: "A name is malformed, or names nothing.",
    413: "The body or the array is too large.",
    429: "Refused for now.",
    500: "A bug of ours; the daemon's log has the story.",
    503: "Too many connections, or too much in work; or what it takes is out of reach.",
}
#: The errors of any call; of any but probes; of any that needs a token; of any with a body.
_ANY_CALL: Final = dict.fromkeys((400, 500), Reason)
_NO_PROBE: Final = {503: ResponseSpec(Reason, headers_if_any=("Retry-After",))}
_WITH_TOKEN: Final = dict.fromkeys((401, 403), ResponseSpec(Reason, headers=("WWW-Authenticate",)))
_WITH_BODY: Final = dict.fromkeys((408, 413), Reason)

#: What a call of every method is described as.
_METHODS: Final = ("get", "post", "put", "patch", "delete", "options")


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Describe the calls."""
    listed = tuple(endpoints)
    bodies = [body for endpoint in listed for body in _bodies(endpoint)]
    types = list(dict.fromkeys(part for body in bodies for part in _types(body)))
    queries = list(dict.fromkeys(query for endpoint in listed for query in endpoint.query))
    schemas, components = msgspec.json.schema_components(
        [*types, *queries], ref_template=_REFERENCE
    )
    known: dict[Any, Any] = dict(zip(types, schemas, strict=False))
    known |= {query: components.pop(query.__name__) for query in queries}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in listed:
        methods = _METHODS if endpoint.method == "*" else (endpoint.method.lower(),)
        path = endpoint.path.replace(":path}", "}")
        for method in methods:
            operation = _operation(endpoint, method, path, known)
            paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "rgd", "version": __version__, "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    endpoint: Endpoint, method: str, path: str, known: Mapping[Any, Any]
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": "_".join((method, *re.findall(r"\w+", path))),
        "summary": endpoint.summary,
        "security": [] if endpoint.scope is None else [{"bearer": [endpoint.scope.value]}, {}],
        "responses": {
            str(status): _response(status, says, known)
            for status, says in sorted(_answers(endpoint).items())
        },
    }
    if parameters := _parameters(endpoint, path, known):
        operation["parameters"] = parameters
    if endpoint.body is not None:
        content = {JSON: {"schema": _schema(endpoint.body, known)}}
        operation["requestBody"] = {"required": endpoint.body_required, "content": content}
    return operation


def _parameters(endpoint: Endpoint, path: str, known: Mapping[Any, Any]) -> list[dict[str, Any]]:
    in_path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", **_PART_SCHEMAS.get(name, {})},
        }
        for name in _PATH_PART.findall(path)
    ]
    in_query = [
        {
            "name": name,
            "in": "query",
            "required": name in known[query]["required"],
            "schema": schema,
        }
        for query in endpoint.query
        for name, schema in known[query]["properties"].items()
    ]
    return in_path + in_query


def _response(status: int, says: ResponseSpec, known: Mapping[Any, Any]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": says.when or _WHEN[status]}
    if says.body is not None:
        response["content"] = {says.content_type: {"schema": _schema(says.body, known)}}
        if says.also is not None:
            response["content"][says.also] = {"schema": {"type": "string"}}
    headers = [(name, True) for name in says.headers]
    headers += [(name, False) for name in says.headers_if_any]
    if headers:
        response["headers"] = {
            name: {"required": is_always, "schema": {"type": "string"}}
            for name, is_always in headers
        }
    return response


def _answers(endpoint: Endpoint) -> dict[int, ResponseSpec]:
    """The endpoint's own answers, and those that any call of its sort may give."""
    answers: dict[int, Any] = dict(_ANY_CALL)
    if not endpoint.is_probe:
        answers |= _NO_PROBE
    if endpoint.scope is not None:
        answers |= _WITH_TOKEN
    if endpoint.body is not None:
        answers |= _WITH_BODY
    errors = dict.fromkeys(endpoint.errors, Reason)
    return {
        status: says if isinstance(says, ResponseSpec) else ResponseSpec(says)
        for status, says in (answers | errors | dict(endpoint.answers)).items()
    }


def _bodies(endpoint: Endpoint) -> Iterable[Any]:
    if endpoint.body is not None:
        yield endpoint.body
    for says in _answers(endpoint).values():
        if says.body is not None:
            yield says.body


def _types(body: Any) -> Iterable[Any]:
    """The plain types that a body is made of: msgspec takes no union of several objects."""
    if isinstance(body, UnionType) or get_origin(body) is list:
        for part in get_args(body):
            yield from _types(part)
    else:
        yield body


def _schema(body: Any, known: Mapping[Any, Any]) -> Any:
    if isinstance(body, UnionType):
        return {"anyOf": [_schema(part, known) for part in get_args(body)]}
    if get_origin(body) is list:
        return {"type": "array", "items": _schema(get_args(body)[0], known)}
    return known[body]
