"""The common parts of a groups file's sections: rates, limits, names, choices.

Law: an error is added to the faults and reading continues, as if the wrong value were absent.
The policy snapshot of a file with faults is never used.

Equal values are one object, because most of 100,000 namespaces have one of a few limits.
`groups` and `group_limits` have the sections.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeVar

from rgd.config.faults import KeyPath, shown
from rgd.core.errors import InvalidName
from rgd.core.policies.model import UNLIMITED, Limit, Rate, Rates, rate_of

RATE_KEYS: Final = ("messages", "bytes")
KIND_KEYS: Final = ("publish", "dispatch")

#: Most different values that are cached to be shared; further ones are separate objects.
SHARED_MAX: Final = 4096

_Choice = TypeVar("_Choice", bound=StrEnum)

_rates_of = lru_cache(SHARED_MAX)(Rates)


def limit_of(entry: dict[str, object], at: KeyPath) -> Limit:
    """The `publish` and `dispatch` of a mapping whose keys are already checked."""
    return Limit(
        rates_in(entry, "publish", at) or UNLIMITED, rates_in(entry, "dispatch", at) or UNLIMITED
    )


def rates_in(entry: dict[str, object], kind: str, at: KeyPath) -> Rates | None:
    """The rates of one kind; None where the kind is absent."""
    if kind not in entry:
        return None
    kind_at = at.below(kind)
    rates = filled_mapping(entry[kind], kind_at)
    kind_at.check_keys(rates, RATE_KEYS)
    return _rates_of(_rate_in(rates, "messages", kind_at), _rate_in(rates, "bytes", kind_at))


def _rate_in(entry: dict[str, object], dimension: str, at: KeyPath) -> Rate:
    if dimension not in entry:
        return None
    value = entry[dimension]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return rate_of(value)
    expected = f"expected a number (units per second; 0 or less is unlimited), got {shown(value)}"
    at.below(dimension).wrong(expected)
    return None


def choice(value: object, choices: type[_Choice], at: KeyPath) -> _Choice | None:
    """One of a few choices."""
    known = [one.value for one in choices]
    if isinstance(value, str) and value in known:
        return choices(value)
    hint = at.faults.meant(value, known) if isinstance(value, str) else ""
    at.wrong(f"expected one of {', '.join(known)}, got {shown(value)}{hint}")
    return None


def filled_mapping(value: object, at: KeyPath) -> dict[str, object]:
    """A required mapping, because a name without a value is usually a wrong indent."""
    if value is None:
        at.wrong("expected a mapping, got nothing; `{}` sets no limits")
    return at.mapping(value)


def check_name(name: str, check: Callable[[str], str], *, at: KeyPath) -> None:
    """Add a fault if a name is invalid."""
    try:
        check(name)
    except InvalidName as exc:
        # The core's message begins with its field; here the dotted key replaces it.
        at.wrong(str(exc).partition(": ")[2])
