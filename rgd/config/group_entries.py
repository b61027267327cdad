"""What the sections of a groups file have in common: rates, limits, names, words.

Law: what is wrong goes to the faults and the reading goes on, with what the entry would be without it;
the book of a file with faults is never used.

Values that are equal are one object, since of 100,000 namespaces most have one of a few limits. What
the sections are is in `groups` and `group_limits`.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeVar

from rgd.config.faults import Place, shown
from rgd.core.errors import InvalidName
from rgd.core.policies.model import UNLIMITED, Limit, Rate, Rates, rate_of

RATE_KEYS: Final = ("messages", "bytes")
KIND_KEYS: Final = ("publish", "dispatch")

#: How many different values are remembered to be shared; those beyond are made anew.
SHARED_MAX: Final = 4096

_Choice = TypeVar("_Choice", bound=StrEnum)

_rates_of = lru_cache(SHARED_MAX)(Rates)


def limit_of(said: dict[str, object], at: Place) -> Limit:
    """The `publish` and `dispatch` of a mapping whose keys are checked."""
    return Limit(
        rates_in(said, "publish", at) or UNLIMITED, rates_in(said, "dispatch", at) or UNLIMITED
    )


def rates_in(said: dict[str, object], kind: str, at: Place) -> Rates | None:
    """The rates of one kind; None where the kind is not said."""
    if kind not in said:
        return None
    kind_at = at.below(kind)
    rates = filled_mapping(said[kind], kind_at)
    kind_at.known_keys(rates, RATE_KEYS)
    return _rates_of(_rate_in(rates, "messages", kind_at), _rate_in(rates, "bytes", kind_at))


def _rate_in(said: dict[str, object], dimension: str, at: Place) -> Rate:
    if dimension not in said:
        return None
    value = said[dimension]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return rate_of(value)
    expected = f"expected a number (units per second; 0 or less is unlimited), got {shown(value)}"
    at.below(dimension).wrong(expected)
    return None


def choice(value: object, choices: type[_Choice], at: Place) -> _Choice | None:
    """One of a few words."""
    known = [one.value for one in choices]
    if isinstance(value, str) and value in known:
        return choices(value)
    hint = at.faults.meant(value, known) if isinstance(value, str) else ""
    at.wrong(f"expected one of {', '.join(known)}, got {shown(value)}{hint}")
    return None


def filled_mapping(value: object, at: Place) -> dict[str, object]:
    """A mapping that must be there: a name with nothing after it is more often a wrong indent."""
    if value is None:
        at.wrong("expected a mapping, got nothing; `{}` sets no limits")
    return at.mapping(value)


def check_name(name: str, check: Callable[[str], str], *, at: Place) -> None:
    """Note where a name is none."""
    try:
        check(name)
    except InvalidName as exc:
        # The core's message names its field first; here the dotted key does.
        at.wrong(str(exc).partition(": ")[2])
