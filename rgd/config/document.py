"""One YAML file as plain values, read strictly and within limits.

Law: values are read exactly as written. A duplicate key is a fault (most YAML readers silently
keep the last one). A key is its text, so a tenant may be called `no`, `on` or `2026`. `5e6` is a
number. This is YAML 1.2's core schema, while PyYAML by itself implements YAML 1.1's.

It reads libyaml's events and not its nodes, because only events count every expansion: an alias
costs as much as its value, and a file that expands to more than `NODES_MAX` values is refused before
it is processed. Tags are refused. `groups`, `load` and `tokens` interpret the values.

The lines of keys are found by a second pass, only after a fault: storing a line for each of a million values
would cost more memory than the values.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final

import yaml

from rgd.config.faults import Faults, joined
from rgd.config.plain_files import read_plain_file
from rgd.errors import ConfigError, Fault

#: Largest file that is read; 100,000 attached namespaces are about 4 MB, with limits of their own 12.
FILE_BYTES_MAX: Final = 32 << 20
#: Most values in a file, with aliases expanded; 100,000 namespaces with every setting are 2.6 million.
NODES_MAX: Final = 4_000_000
#: Deepest nesting; rgd's files use 6 levels.
DEPTH_MAX: Final = 16
#: Longest text of a number; also keeps `int` below its own limit on digits.
NUMBER_CHARS_MAX: Final = 100

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT: Final = re.compile(r"[-+]?[0-9]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file, and the faults of its YAML so far."""

    #: dict (with str keys), list, str, int, float, bool or None; None also for an empty file.
    value: object
    faults: Faults


class _Reader:
    """Reads the value of one document from its events; collects the faults after which reading can go on.

    Args:
        text: the document.
        faults: takes them.
        wanted: dotted keys whose lines are sought.
    """

    def __init__(self, text: str, faults: Faults, wanted: Collection[str] = ()) -> None:
        # libyaml where PyYAML was built with it (all wheels are), the same events without it.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))
        self._faults = faults
        self._wanted = wanted
        #: Where each of them is first said, from 1.
        self.lines: dict[str, int] = {}
        self._nodes = 0
        #: The keys that lead to the value that is being read.
        self._path: list[str] = []
        #: By anchor: a value, and for how many values it stands.
        self._anchors: dict[str, tuple[object, int]] = {}

    def read(self) -> object:
        """The value of the only document; None if there is none.

        Raises:
            ConfigError: the rest cannot be read.
            yaml.YAMLError: it is no YAML.
        """
        root: object = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._fatal("expected one YAML document, got a second (`---`)", event)
            elif isinstance(event, yaml.NodeEvent):
                root = self._value(event)
        return root

    def _value(self, event: Any) -> object:
        """The value that begins with an event; its other events are taken."""
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event)
        before = self._nodes
        self._count(1, event)
        if event.tag is not None:
            self._fault(f"expected a value without a tag, got {event.tag}", event)
        if isinstance(event, yaml.ScalarEvent):
            # Only unquoted text can be another type than text.
            value = event.value if event.style else _plain(event.value)
        else:
            if len(self._path) == DEPTH_MAX:
                raise self._fatal(f"expected at most {DEPTH_MAX} levels of nesting", event)
            # Inside it, its alias stands for nothing.
            self._anchors.pop(event.anchor, None)
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            value = self._mapping() if is_mapping else self._list()
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._nodes - before)
        return value

    def _mapping(self) -> dict[str, object]:
        found: dict[str, object] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                kind = "an alias" if isinstance(event, yaml.AliasEvent) else "a mapping or list"
                raise self._fatal(f"expected plain names as keys, got {kind}", event)
            self._count(1, event)
            self._path.append(event.value)
            self._note_line(event)
            if event.tag is not None or event.anchor is not None:
                self._fault("expected a name without a tag or an anchor", event)
            if event.value in found:
                self._fault("expected this key once, got it again", event)
            found.setdefault(event.value, self._value(next(self._events)))
            self._path.pop()
        return found

    def _list(self) -> list[object]:
        found: list[object] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            self._path.append(str(len(found)))
            self._note_line(event)
            found.append(self._value(event))
            self._path.pop()
        return found

    def _aliased(self, event: Any) -> object:
        if event.anchor not in self._anchors:
            expected = f"expected an anchor &{event.anchor} that ends before its alias"
            raise self._fatal(expected, event)
        value, size = self._anchors[event.anchor]
        self._count(size, event)
        return value

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > NODES_MAX:
            expected = f"expected at most {NODES_MAX} values with every alias unfolded"
            raise self._fatal(expected, event)

    def _note_line(self, event: Any) -> None:
        if self._wanted and (key := self._key()) in self._wanted:
            self.lines.setdefault(key, _line(event))

    def _key(self) -> str:
        """The dotted key of the value that is being read."""
        return reduce(joined, self._path, "")

    def _fault(self, expected: str, event: Any) -> None:
        self._faults.add(self._key(), expected, _line(event))

    def _fatal(self, expected: str, event: Any) -> ConfigError:
        """The error for a file that cannot be read any further."""
        self._fault(expected, event)
        return ConfigError(*self._faults.listed())


def read_document(path: Path) -> Document:
    """Read and parse one file.

    Raises:
        ConfigError: it cannot be read, or is not YAML at all. Lesser faults are in the document.
    """
    return parse_document(read_content(path), str(path))


def read_content(path: Path) -> bytes:
    """Read what `parse_document` takes.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return read_plain_file(path, FILE_BYTES_MAX)
    except OSError as exc:
        reason = exc.strerror or type(exc).__name__
        raise ConfigError(Fault(str(path), "", f"expected a readable file: {reason}")) from exc


def parse_document(content: bytes, source: str) -> Document:
    """Parse YAML; `source` is the name that faults carry.

    Raises:
        ConfigError: it is too large, not UTF-8, not YAML, or against a limit.
    """
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(Fault(source, "", f"expected a file of at most {FILE_BYTES_MAX} bytes"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        expected = f"expected text in UTF-8; byte {exc.start} is none"
        raise ConfigError(Fault(source, "", expected)) from exc
    faults = Faults(source, locate=lambda keys: _lines_of(text, keys))
    try:
        return Document(_Reader(text, faults).read(), faults)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        faults.add("", f"expected YAML: {_where(exc)}", None if mark is None else mark.line + 1)
        raise ConfigError(*faults.listed()) from exc


def _lines_of(text: str, keys: Collection[str]) -> dict[str, int]:
    """The line of each key: where it is first said; of one that is not, its nearest parent's."""
    parents = {key: _with_parents(key) for key in keys}
    wanted = {name for names in parents.values() for name in names}
    reader = _Reader(text, Faults(""), wanted)
    reader.read()
    lines = reader.lines
    found = {key: [name for name in names if name in lines] for key, names in parents.items()}
    return {key: lines[names[0]] for key, names in found.items() if names}


def _with_parents(key: str) -> list[str]:
    """A dotted key and its possible parents, the longest first."""
    parts = key.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _plain(text: str) -> object:
    """The value of an unquoted scalar in YAML 1.2's core schema (without octal and hexadecimal)."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > NUMBER_CHARS_MAX:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def _where(error: yaml.YAMLError) -> str:
    """PyYAML's message in one line."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem


def _line(event: Any) -> int:
    """The line of an event, from 1."""
    line: int = event.start_mark.line
    return line + 1
