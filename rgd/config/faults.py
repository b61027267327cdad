"""Collecting everything that is wrong, so that a person mends it in one go.

Law: one run names every fault with its file, its line, its dotted key and what was expected; nothing
stops at the first. `Faults` is handed down while a file is read and raised once at the end; only then,
and only where there are faults, the lines of their keys are looked for.

The wording lives here too: how a value is shown, and which known name was probably meant.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from rgd.errors import ConfigError, Fault

#: Most faults that are told one by one; the rest are counted, so that a file of nothing but
#: mistakes stays readable and cheap.
FAULTS_MAX: Final = 1000

#: Most known names that are compared with a wrong one, and most wrong names for which that is
#: done: a comparison costs up to 100 us.
CANDIDATES_MAX: Final = 1000
GUESSES_MAX: Final = 50

SHOWN_CHARS_MAX: Final = 80

#: The lines of dotted keys, as far as they are known.
Locate = Callable[[Collection[str]], Mapping[str, int]]


class Faults:
    """What is wrong with one source, in the order it was found."""

    def __init__(self, source: str, locate: Locate = lambda _: {}) -> None:
        self.source = source
        #: Finds the lines of keys; set by who has read the source.
        self.locate = locate
        self.found: list[Fault] = []
        self._untold = 0
        self._guesses = 0

    def add(self, key: str, expected: str, line: int | None = None) -> None:
        """Note one fault; `expected` says what should be there and what is."""
        if len(self.found) < FAULTS_MAX:
            self.found.append(Fault(self.source, key, expected, line))
        else:
            self._untold += 1

    def meant(self, name: str, known: Collection[str]) -> str:
        """The end of a sentence that names the nearest known name, or nothing."""
        self._guesses += 1
        guess = nearest(name, known) if self._guesses <= GUESSES_MAX else None
        return f"; did you mean {guess!r}?" if guess is not None else ""

    def told(self) -> tuple[Fault, ...]:
        """Every fault with its line; beyond `FAULTS_MAX`, how many more there are."""
        if keys := {fault.key for fault in self.found if fault.line is None and fault.key}:
            lines = self.locate(keys)
            self.found = [
                fault if fault.line else replace(fault, line=lines.get(fault.key))
                for fault in self.found
            ]
        if not self._untold:
            return tuple(self.found)
        return (*self.found, Fault(self.source, "", f"and {self._untold} more faults"))

    def raise_if_any(self) -> None:
        """Raise what was found.

        Raises:
            ConfigError: there is at least one fault.
        """
        if self.found:
            raise ConfigError(*self.told())


class Place:
    """A place in one source, where something may be wrong; its dotted key is made when it is."""

    # Not a dataclass: a large file is a million places, and a frozen one takes thrice as long to make.
    __slots__ = ("_name", "_parent", "faults")

    def __init__(self, faults: Faults, name: str = "", parent: "Place | None" = None) -> None:
        self.faults = faults
        self._name = name
        self._parent = parent

    @property
    def key(self) -> str:
        """The dotted key; "" is the source as a whole."""
        return self._name if self._parent is None else joined(self._parent.key, self._name)

    def below(self, name: str) -> "Place":
        """The place of one entry of the mapping here."""
        return Place(self.faults, name, self)

    def wrong(self, expected: str) -> None:
        """Note that what is here is not what was expected."""
        self.faults.add(self.key, expected)

    def mapping(self, value: object) -> dict[str, object]:
        """The mapping here; anything else is a fault and reads as empty.

        A section left empty is one without entries.
        """
        if isinstance(value, dict):
            return value
        if value is not None:
            self.wrong(f"expected a mapping, got {shown(value)}")
        return {}

    def known_keys(self, said: Collection[str], known: Collection[str]) -> None:
        """Note every key that is not known, with the nearest one that is."""
        for key in said:
            if key not in known:
                hint = self.faults.meant(key, known)
                self.below(key).wrong(f"unknown key; expected one of {', '.join(known)}{hint}")


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that `name` resembles most; None where there is nothing to compare with."""
    if len(known) > CANDIDATES_MAX:
        return None
    return next(iter(get_close_matches(name[:SHOWN_CHARS_MAX], known, n=1, cutoff=0.0)), None)


def shown(value: object) -> str:
    """A value as a person wrote it, cut to a readable length."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS_MAX else text[: SHOWN_CHARS_MAX - 3] + "..."


def joined(parent: str, key: str) -> str:
    """The dotted key of `key` below `parent` ("" is the top)."""
    clipped = key if len(key) <= SHOWN_CHARS_MAX * 4 else key[: SHOWN_CHARS_MAX * 4] + "..."
    return f"{parent}.{clipped}" if parent else clipped
