"""Finds the lines of dotted keys in a YAML file, only after a fault.

Law: a key has the line of its first occurrence. A key without one (it is missing, or inside an
alias) has the line of its nearest parent that has one.

It reads the events a second time, because storing a line for each of a million values
would cost more memory than the values. `document` reads the values.
"""

from collections.abc import Collection, Iterable
from typing import Any

import yaml

from rgd.config.faults import joined


class _Open:
    """A mapping or list that has begun and not ended."""

    __slots__ = ("is_list", "key", "path", "position")

    def __init__(self, path: str, *, is_list: bool) -> None:
        self.path = path
        self.is_list = is_list
        #: In a list, the number of items so far.
        self.position = 0
        #: In a mapping, the key whose value comes next.
        self.key: str | None = None


def lines_of(events: Iterable[Any], keys: Collection[str]) -> dict[str, int]:
    """The line, from 1, of each key that has one in a file, given the file's events."""
    wanted = {prefix for key in keys for prefix in _with_parents(key)}
    lines = _first_lines(events, wanted)
    found = {
        key: next((lines[prefix] for prefix in _with_parents(key) if prefix in lines), None)
        for key in keys
    }
    return {key: line for key, line in found.items() if line is not None}


def _with_parents(key: str) -> list[str]:
    """A dotted key and its possible parents, the longest first."""
    parts = key.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _first_lines(events: Iterable[Any], wanted: set[str]) -> dict[str, int]:
    lines: dict[str, int] = {}
    opened: list[_Open] = []
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            opened.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        path = ""
        if opened:
            top = opened[-1]
            if not top.is_list and top.key is None:
                top.key = getattr(event, "value", "")
                path = joined(top.path, top.key)
                if path in wanted:
                    lines.setdefault(path, _line(event))
                continue
            path = _begun(top)
            if top.is_list and path in wanted:
                lines.setdefault(path, _line(event))
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append(_Open(path, is_list=isinstance(event, yaml.SequenceStartEvent)))
    return lines


def _begun(top: _Open) -> str:
    """The path of the value that begins in an open mapping or list."""
    name = top.key or ""
    if top.is_list:
        name = str(top.position)
        top.position += 1
    top.key = None
    return joined(top.path, name) if name else top.path


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1
