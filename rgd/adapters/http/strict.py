"""Reads a JSON body into its type, or says which field is wrong and what was expected.

What follows a question mark is read the same way (`QueryReader`).

Law: nothing that comes in can do more than be refused with a `BadBody` that
names the field: not malformed JSON, not a number of a thousand digits, not a
hundred thousand brackets, not a name that stands there twice. What is larger than
`OBJECT_BYTES_MAX` is not looked at: nobody else is served while it is decoded.

A good body is decoded once, straight into its msgspec type. Only a bad one is
looked at again, field by field, to find words for it. What is expected of a
field is the description in its type, which is also what /openapi.json says.
"""

import json
import typing
from collections.abc import Mapping
from typing import Annotated, Final, Generic, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.shown import SHOWN_CHARS_MAX, cut

#: Largest JSON object that is read: the longest names that may be, all characters escaped, take 27 KiB.
OBJECT_BYTES_MAX: Final = 32 << 10

_Body = TypeVar("_Body", bound=msgspec.Struct)

_SPACE: Final = b" \t\r\n"

_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

#: What msgspec raises for bytes it cannot read: DecodeError, UnicodeDecodeError; and too deep nesting.
UNREADABLE: Final = (ValueError, RecursionError)


class BodyDecoder(Generic[_Body]):
    """Decodes one type of body; `path` leads the names of its fields in a reason.

    Args:
        body_type: the type.
        path: of the field whose value it is, with a dot at its end; empty for a whole body.
        names_once: whether a name that stands twice in an object is at fault.
    """

    def __init__(self, body_type: type[_Body], path: str = "", *, names_once: bool = True) -> None:
        self._decode = msgspec.json.Decoder(body_type).decode
        self._path = path
        self._names_once = names_once
        hints = typing.get_type_hints(body_type, include_extras=True)
        fields = msgspec.structs.fields(body_type)
        #: Whether the names that a body had are those of its fields that are not UNSET.
        self._is_as_said = all(field.default is UNSET for field in fields)
        self._fields = {
            field.encode_name: _Field(hints[field.name], f"{path}{field.encode_name}")
            for field in fields
        }

    def decode(self, body: bytes | msgspec.Raw) -> _Body:
        """Read a body.

        Raises:
            BadBody: naming the field at fault; or it is over `OBJECT_BYTES_MAX`.
        """
        size = len(body) if type(body) is bytes else len(memoryview(body))
        if size > OBJECT_BYTES_MAX:
            expected = f"expected a JSON object of at most {OBJECT_BYTES_MAX} bytes"
            raise BadBody(f"{self._name}: {expected}, got {size}")
        try:
            decoded = self._decode(body)
        except UNREADABLE as exc:
            raise BadBody(self._explain(body, exc)) from None
        if self._names_once and not (self._is_as_said and _names_each_once(body, decoded)):
            self._check_names(bytes(body))
        return decoded

    def _check_names(self, body: bytes) -> None:
        """Refuse an object, at any depth, in which a name stands twice."""

        def check(members: list[tuple[str, object]]) -> None:
            names = [name for name, _ in members]
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise BadBody(f"{self._path}{cut(twice)}: expected once, got it twice")

        # Numbers are not read: what they are is known already.
        json.loads(body, object_pairs_hook=check, parse_int=len, parse_float=len)

    def _explain(self, body: bytes | msgspec.Raw, error: Exception) -> str:
        told = bytes(body)
        try:
            members = _decode_members(told)
        except msgspec.ValidationError:
            expected = f"a JSON object, got {shown(told)}"
        except RecursionError:
            expected = "a JSON object, got one that is nested too deeply"
        except UnicodeDecodeError:
            expected = "JSON in UTF-8, got other bytes"
        except ValueError as exc:
            expected = f"JSON in UTF-8, got {exc if told.strip() else 'nothing'}"
        else:
            faults = (self._fault_of(name, value) for name, value in members.items())
            return next(filter(None, faults), f"{self._name}: {cut(str(error))}")
        return f"{self._name}: expected {expected}"

    def _fault_of(self, name: str, value: msgspec.Raw) -> str | None:
        field = self._fields.get(name)
        if field is not None:
            return field.fault_of(value)
        known = ", ".join(self._fields)
        return f"{self._path}{cut(name)}: unknown field; expected one of {known}"

    @property
    def _name(self) -> str:
        return self._path.rstrip(".") or "body"


class QueryReader(Generic[_Body]):
    """Reads what follows a question mark, or headers in place of it, into a type of texts, numbers and choices."""

    def __init__(self, query_type: type[_Body]) -> None:
        self._type = query_type
        self.hints = typing.get_type_hints(query_type, include_extras=True)

    def read(self, query: Mapping[str, str]) -> _Body:
        """Read a query.

        Raises:
            BadBody: a parameter is unknown, missing, malformed or there twice; it is named.
        """
        given = dict(query)
        if len(given) < len(query):
            names = [name for name, _ in query.items()]
            twice = next(name for name in names if names.count(name) > 1)
            raise BadBody(f"{cut(twice)}: expected once, got it twice")
        try:
            decoded = msgspec.convert(given, self._type, strict=False)
        except msgspec.ValidationError as exc:
            raise self._fault(given, str(exc).split("`")[-2].removeprefix("$.")) from None
        except UnicodeEncodeError as exc:
            # A header may have any bytes; they are not quoted.
            name = next(name for name, text in given.items() if text == exc.object)
            expected = _description(self.hints[name])
            raise BadBody(f"{name}: expected {expected}, got other bytes") from None
        for name, text in given.items():
            # 1e2 is no number here.
            if type(value := getattr(decoded, name)) is int and str(value) != text:
                raise self._fault(given, name)
        return decoded

    def _fault(self, given: Mapping[str, str], name: str) -> BadBody:
        for one in given:
            if one not in self.hints:
                known = ", ".join(self.hints)
                return BadBody(f"{cut(one)}: unknown parameter; expected one of {known}")
        got = cut(given[name]) if name in given else "nothing"
        return BadBody(f"{name}: expected {_description(self.hints[name])}, got {got}")


class _Field:
    """One field of a body: its type alone, and the text of its error."""

    def __init__(self, hint: object, name: str) -> None:
        self._name = name
        self._expected = _description(hint) or "another type"
        #: Of an object, or of each object of a list.
        self._below: BodyDecoder[msgspec.Struct] | None = None
        below = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
        self._is_list = typing.get_origin(below) is list
        if self._is_list:
            (below,) = typing.get_args(below)
        if isinstance(below, type) and issubclass(below, msgspec.Struct):
            self._below = BodyDecoder(below, f"{name}[]." if self._is_list else f"{name}.")
        self._decode = msgspec.json.Decoder(hint).decode

    def fault_of(self, value: msgspec.Raw) -> str | None:
        """What is wrong with the value, if anything."""
        try:
            if self._below is not None:
                for one in _decode_items(value) if self._is_list else (value,):
                    self._below.decode(one)
            self._decode(value)
        except BadBody as exc:
            return str(exc)
        except UNREADABLE:
            return f"{self._name}: expected {self._expected}, got {shown(bytes(value))}"
        return None


def _names_each_once(body: bytes | msgspec.Raw, decoded: msgspec.Struct) -> bool:
    """Whether no name stands twice in an object; cheap, and wrong only in saying no.

    An object has at least as many colons as members, and without its spaces as many that follow a
    quotation mark; and at least as many members as its type has fields that were said. Where one of
    the first is equal to the last, no name stands twice.
    """
    fields = astuple(decoded)
    said = len(fields) - fields.count(UNSET)
    told = body if type(body) is bytes else bytes(body)
    return told.count(b":") == said or told.translate(None, _SPACE).count(b'":') == said


def shown(value: bytes) -> str:
    """A JSON value as it came, cut to a readable length."""
    text = value.strip()[: SHOWN_CHARS_MAX * 4].decode("utf-8", "replace")
    if text.startswith("{"):
        return "an object"
    if text.startswith("["):
        return "an array"
    return cut(text)


def _description(hint: object) -> str:
    """The description of a type, wherever in a union it stands."""
    if typing.get_origin(hint) is Annotated:
        metas = (meta for meta in typing.get_args(hint)[1:] if isinstance(meta, msgspec.Meta))
        return next((meta.description for meta in metas if meta.description), "")
    return next(filter(None, map(_description, typing.get_args(hint))), "")
