"""Collects all errors of a file, so that its author can fix them in one go.

Law: one run names every fault with its file, its line, its dotted key and the expectation; it does not
stop at the first. `Faults` is passed down while a file is read and raised once at the end. Only then,
and only if there are faults, the lines of their keys are searched.

The wording is here too: how a value is shown, and which known name was probably meant.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from rgd.errors import ConfigError, Fault
from rgd.text import cut, without_credentials

#: Most faults that are listed one by one. The rest are counted, so that a file with only
#: mistakes stays readable and cheap.
FAULTS_MAX: Final = 1000

#: Most known names that are compared with a wrong one, and most wrong names that are
#: compared, because a comparison costs up to 100 us.
CANDIDATES_MAX: Final = 1000
GUESSES_MAX: Final = 50
#: How alike a suggestion is at least (difflib's ratio): `msgs` and `messages` are, `processes` and `name` are not.
ALIKE_MIN: Final = 0.5

SHOWN_CHARS_MAX: Final = 80

#: Returns the lines of dotted keys, as far as they are known.
Locate = Callable[[Collection[str]], Mapping[str, int]]


class Faults:
    """The faults of one source, in the order they were found."""

    def __init__(self, source: str, locate: Locate = lambda _: {}) -> None:
        self.source = source
        #: Finds the lines of keys.
        self._locate = locate
        self.found: list[Fault] = []
        self._omitted = 0
        self._guesses = 0

    def add(self, key: str, expected: str, line: int | None = None) -> None:
        """Add one fault; `expected` has the expected and the actual value."""
        if len(self.found) < FAULTS_MAX:
            self.found.append(Fault(self.source, key, expected, line))
        else:
            self._omitted += 1

    def meant(self, name: str, known: Collection[str], prefix: str = "") -> str:
        """The end of a sentence that names the nearest known name, or nothing.

        Args:
            name: what was written.
            known: what could have been.
            prefix: what makes names alike without meaning anything; they are compared behind it.
        """
        self._guesses += 1
        if self._guesses > GUESSES_MAX:
            return ""
        behind = [one.removeprefix(prefix) for one in known if one.startswith(prefix)]
        guess = nearest(name.removeprefix(prefix), behind)
        return "" if guess is None else f"; did you mean {prefix + guess!r}?"

    def listed(self) -> tuple[Fault, ...]:
        """Every fault with its line; beyond `FAULTS_MAX`, the number of further ones."""
        if keys := {fault.key for fault in self.found if fault.line is None and fault.key}:
            lines = self._locate(keys)
            self.found = [
                fault if fault.line else replace(fault, line=lines.get(fault.key))
                for fault in self.found
            ]
        if not self._omitted:
            return tuple(self.found)
        others = f"and {self._omitted} more faults"
        return (*self.found, Fault(self.source, "", others, count=self._omitted))

    def raise_if_any(self) -> None:
        """Raise the faults.

        Raises:
            ConfigError: there is at least one fault.
        """
        if self.found:
            raise ConfigError(*self.listed())


class KeyPath:
    """The path of a value in one source; its dotted key is built only for a fault."""

    # Not a dataclass: a large file has a million paths, and a frozen dataclass takes three times as long to make.
    __slots__ = ("_name", "_parent", "faults")

    def __init__(self, faults: Faults, name: str = "", parent: "KeyPath | None" = None) -> None:
        self.faults = faults
        self._name = name
        self._parent = parent

    @property
    def key(self) -> str:
        """The dotted key; "" is the source as a whole."""
        return self._name if self._parent is None else joined(self._parent.key, self._name)

    def below(self, name: str) -> "KeyPath":
        """The path of one entry of the mapping here."""
        return KeyPath(self.faults, name, self)

    def wrong(self, expected: str) -> None:
        """Add a fault for this value."""
        self.faults.add(self.key, expected)

    def mapping(self, value: object) -> dict[str, object]:
        """The mapping here; anything else is a fault and reads as empty.

        An empty section has no entries.
        """
        if isinstance(value, dict):
            return value
        if value is not None:
            self.wrong(f"expected a mapping, got {shown(value)}")
        return {}

    def check_keys(self, keys: Collection[str], known: Collection[str]) -> None:
        """Add a fault for every unknown key, with the nearest known one."""
        for key in keys:
            if key not in known:
                hint = self.faults.meant(key, known)
                self.below(key).wrong(f"unknown key; expected one of {', '.join(known)}{hint}")


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that is most similar to `name`; None if there are too many or none."""
    if len(known) > CANDIDATES_MAX:
        return None
    near = get_close_matches(name[:SHOWN_CHARS_MAX], known, n=1, cutoff=ALIKE_MIN)
    return next(iter(near), None)


def shown(value: object) -> str:
    """A value as it was written, without credentials in URLs, truncated to a readable length."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return cut(without_credentials(repr(value)), SHOWN_CHARS_MAX)


def joined(parent: str, key: str) -> str:
    """The dotted key of `key` below `parent` ("" is the top)."""
    clipped = cut(key, SHOWN_CHARS_MAX * 4)
    return f"{parent}.{clipped}" if parent else clipped
