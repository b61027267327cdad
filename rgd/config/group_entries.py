"""The readers of which the schema of a groups file is made (`groups`).

A reader takes a value of YAML and its path, and gives what it means. Those of mappings are made of those of their entries.

Law: an error is added to the faults and reading continues, as if the wrong value were absent or nothing.
The policy snapshot of a file with faults is never used.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, TypeVar

from rgd.config.faults import KeyPath, shown
from rgd.core.errors import InvalidName
from rgd.core.policies.model import Rate, rate_of
from rgd.core.shares.model import PPM

_Value = TypeVar("_Value")

Read = Callable[[object, KeyPath], _Value]
#: Checks a name; raises InvalidName.
Check = Callable[[str], str]


def made(make: Callable[..., _Value], **readers: Read[Any]) -> Read[_Value]:
    """A reader of a mapping: what `make` makes of the entries that are there; an unknown key is a fault."""

    def read_entries(value: object, at: KeyPath) -> _Value:
        entries = at.mapping(value)
        at.check_keys(entries, readers)
        found = {
            key: read(entries[key], at.below(key))
            for key, read in readers.items()
            if key in entries
        }
        return make(**found)

    return read_entries


def filled(read: Read[_Value]) -> Read[_Value]:
    """A reader of a mapping that is required, because a name without a value is usually a wrong indent."""

    def read_filled(value: object, at: KeyPath) -> _Value:
        if value is None:
            at.wrong("expected a mapping, got nothing; `{}` sets no limits")
        return read(value, at)

    return read_filled


def by_name(check: Check, read: Read[_Value]) -> Read[dict[str, _Value]]:
    """A reader of a mapping from names to values."""

    def read_all(value: object, at: KeyPath) -> dict[str, _Value]:
        found: dict[str, _Value] = {}
        for name, one in at.mapping(value).items():
            name_at = at.below(name)
            try:
                check(name)
            except InvalidName as exc:
                # The core's message begins with its field; here the dotted key replaces it.
                name_at.wrong(str(exc).partition(": ")[2])
            found[name] = read(one, name_at)
        return found

    return read_all


def choice(choices: type[StrEnum]) -> Read[StrEnum | None]:
    """A reader of one of a few choices."""
    known: Final = [one.value for one in choices]

    def read(value: object, at: KeyPath) -> StrEnum | None:
        if isinstance(value, str) and value in known:
            return choices(value)
        hint = at.faults.meant(value, known) if isinstance(value, str) else ""
        at.wrong(f"expected one of {', '.join(known)}, got {shown(value)}{hint}")
        return None

    return read


def flag(value: object, at: KeyPath) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    at.wrong(f"expected true or false, got {shown(value)}")
    return False


def rate(value: object, at: KeyPath) -> Rate:
    """Units per second."""
    number = _number(value)
    if number is not None:
        return rate_of(number)
    at.wrong(f"expected a number (units per second; 0 or less is unlimited), got {shown(value)}")
    return None


def part(value: object, at: KeyPath) -> int | None:
    """A part in millionths; nothing is none."""
    number = _number(value)
    ppm = round(number * PPM) if number is not None and 0 < number <= 1 else 0
    if ppm or value is None:
        return ppm or None
    at.wrong(f"expected a number above 0 and at most 1 (of the share), got {shown(value)}")
    return None


def whole(largest: int) -> Read[int]:
    """A reader of a whole number; <= 0 and larger ones than Pulsar's are unlimited (-1)."""

    def read(value: object, at: KeyPath) -> int:
        number = _number(value)
        if number is not None and number == int(number):
            return int(number) if 0 < number <= largest else -1
        at.wrong(f"expected a whole number (0 or less is unlimited), got {shown(value)}")
        return -1

    return read


def _number(value: object) -> float | None:
    """A finite number; None: the value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None
