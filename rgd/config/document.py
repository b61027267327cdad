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
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

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


@dataclass(slots=True)
class _Open:
    """A mapping or list that has begun and not ended."""

    container: dict[str, object] | list[object]
    path: str
    anchor: str | None
    #: Values counted before it began.
    before: int
    #: In a mapping: the key whose value comes next.
    key: str | None = None


@dataclass(slots=True)
class _Anchored:
    value: object
    #: How many values it stands for.
    size: int


@dataclass(slots=True)
class _Builder:
    """Builds values from events; `faults` collects errors after which reading can continue."""

    faults: Faults
    _nodes_max: int
    #: Dotted keys whose lines are sought.
    _wanted: Collection[str] = ()
    #: Where each of them is first said, from 1.
    lines: dict[str, int] = field(default_factory=dict)
    root: object = None
    documents: int = 0
    _nodes: int = 0
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, _Anchored] = field(default_factory=dict)

    def take(self, event: Any) -> None:
        """Add one of PyYAML's events."""
        # A dict of types: a large file is millions of events.
        if (handler := self._handlers.get(type(event))) is not None:
            handler(self, event)

    def _on_document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            expected = "expected one YAML document, got a second (`---`)"
            raise _fatal(self.faults, "", expected, event)

    def _on_scalar(self, event: Any) -> None:
        self._count(1, event)
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.container, dict) and top.key is None:
            self._take_key(top, event)
            return
        if event.tag is not None:
            self._refuse_tag(self._here(), event)
        # Only unquoted text can be another type than text.
        value = event.value if event.style else _plain(event.value)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1)
        self._put(value)

    def _take_key(self, top: _Open, event: Any) -> None:
        key: str = event.value
        if key in top.container:
            expected = "expected this key once, got it again"
            self.faults.add(joined(top.path, key), expected, _line(event))
        top.key = key
        if self._wanted:
            self._note_line(event)

    def _refuse_tag(self, path: str, event: Any) -> None:
        self.faults.add(path, f"expected a value without a tag, got {event.tag}", _line(event))

    def _on_mapping(self, event: Any) -> None:
        self._begin({}, event)

    def _on_list(self, event: Any) -> None:
        self._begin([], event)

    def _begin(self, container: dict[str, object] | list[object], event: Any) -> None:
        self._count(1, event)
        path = self._here()
        if self._open and isinstance(self._open[-1].container, dict) and self._open[-1].key is None:
            expected = "expected plain names as keys, got a mapping or list"
            raise _fatal(self.faults, path, expected, event)
        if len(self._open) == DEPTH_MAX:
            expected = f"expected at most {DEPTH_MAX} levels of nesting"
            raise _fatal(self.faults, path, expected, event)
        if event.tag is not None:
            self._refuse_tag(path, event)
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)
        self._open.append(_Open(container, path, event.anchor, self._nodes))

    def _end(self, _: Any) -> None:
        done = self._open.pop()
        if done.anchor is not None:
            self._anchors[done.anchor] = _Anchored(done.container, self._nodes - done.before + 1)
        self._put(done.container)

    def _on_alias(self, event: Any) -> None:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            expected = f"expected an anchor &{event.anchor} that ends before its alias"
            raise _fatal(self.faults, self._here(), expected, event)
        self._count(anchored.size, event)
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.container, dict) and top.key is None:
            expected = "expected plain names as keys, got an alias"
            raise _fatal(self.faults, top.path, expected, event)
        self._put(anchored.value)

    def _put(self, value: object) -> None:
        if not self._open:
            self.root = value
            return
        top = self._open[-1]
        if isinstance(top.container, list):
            top.container.append(value)
        else:
            assert top.key is not None
            top.container.setdefault(top.key, value)
            top.key = None

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._wanted and self._open and isinstance(self._open[-1].container, list):
            self._note_line(event)
        if self._nodes > self._nodes_max:
            expected = f"expected at most {self._nodes_max} values with every alias unfolded"
            raise _fatal(self.faults, self._here(), expected, event)

    def _note_line(self, event: Any) -> None:
        if (key := self._here()) in self._wanted:
            self.lines.setdefault(key, _line(event))

    def _here(self) -> str:
        """The dotted key of the value that comes next."""
        if not self._open:
            return ""
        top = self._open[-1]
        name = str(len(top.container)) if isinstance(top.container, list) else (top.key or "")
        return joined(top.path, name) if name else top.path

    _handlers: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        yaml.ScalarEvent: _on_scalar,
        yaml.MappingStartEvent: _on_mapping,
        yaml.SequenceStartEvent: _on_list,
        yaml.MappingEndEvent: _end,
        yaml.SequenceEndEvent: _end,
        yaml.AliasEvent: _on_alias,
        yaml.DocumentStartEvent: _on_document,
    }


def read_document(path: Path, bytes_max: int = FILE_BYTES_MAX) -> Document:
    """Read and parse one file.

    Raises:
        ConfigError: it cannot be read, or is not YAML at all. Lesser faults are in the document.
    """
    source = str(path)
    try:
        content = read_plain_file(path, bytes_max)
    except OSError as exc:
        reason = exc.strerror or type(exc).__name__
        raise ConfigError(Fault(source, "", f"expected a readable file: {reason}")) from exc
    return parse_document(content, source, bytes_max)


def parse_document(
    content: bytes, source: str, bytes_max: int = FILE_BYTES_MAX, nodes_max: int = NODES_MAX
) -> Document:
    """Parse YAML; `source` is the name that faults carry.

    Raises:
        ConfigError: it is too large, not UTF-8, not YAML, or against a limit.
    """
    faults = Faults(source)
    if len(content) > bytes_max:
        raise _fatal(faults, "", f"expected a file of at most {bytes_max} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        expected = f"expected text in UTF-8; byte {exc.start} is none"
        raise _fatal(faults, "", expected) from exc
    faults.locate = lambda keys: _lines_of(text, nodes_max, keys)
    builder = _Builder(faults, nodes_max)
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise _fatal(faults, "", f"expected YAML: {_where(exc)}", line=line) from exc
    return Document(builder.root, faults)


def _lines_of(text: str, nodes_max: int, keys: Collection[str]) -> dict[str, int]:
    """The line of each key: where it is first said; of one that is not, its nearest parent's."""
    parents = {key: _with_parents(key) for key in keys}
    builder = _Builder(
        Faults(""), nodes_max, {name for names in parents.values() for name in names}
    )
    for event in _events(text):
        builder.take(event)
    lines = builder.lines
    found = {key: [name for name in names if name in lines] for key, names in parents.items()}
    return {key: lines[names[0]] for key, names in found.items() if names}


def _with_parents(key: str) -> list[str]:
    """A dotted key and its possible parents, the longest first."""
    parts = key.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _events(text: str) -> Iterator[Any]:
    # libyaml where PyYAML was built with it (all wheels are), the same events without it.
    return iter(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


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


def _fatal(
    faults: Faults, key: str, expected: str, event: Any = None, *, line: int | None = None
) -> ConfigError:
    """The error for a file that cannot be read any further."""
    faults.add(key, expected, line if event is None else _line(event))
    return ConfigError(*faults.listed())
