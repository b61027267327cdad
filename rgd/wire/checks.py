"""Names and numbers that came over the wire, or are about to go there.

Law: what a decoder lets in can be used by the core without a further look: counts and rates are
0 to `COUNT_MAX`, and names have no control characters and a length. Encoders use the same checks, so nothing is sent that the other
side would refuse.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import lt
from typing import Final

from rgd.core.errors import InvalidName
from rgd.core.policies.names import ENTITY, NAME_MAX, check_entity
from rgd.core.units import COUNT_MAX
from rgd.wire.errors import Malformed, Reason

#: Largest weight of a broker, in thousandths.
WEIGHT_MAX: Final = 1_000_000_000

#: Names of groups, one a line; nothing is tried twice.
_GROUPS: Final = re.compile(rf"(?:{ENTITY.pattern}+\n)*+")
_PRINTABLE: Final = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{{1,{NAME_MAX}}}")


def check_broker(name: str) -> str:
    """Return `name` if it may name a broker: a host's name, or a stock broker's service URL."""
    return _check_printable(name, "broker")


def check_group(name: str) -> str:
    """Return `name` if it may name a group of rgd's."""
    try:
        return check_entity(name, "group")
    except InvalidName as exc:
        raise Malformed(Reason.BAD_NAME, str(exc)) from exc


def check_groups(names: Sequence[str]) -> None:
    """Refuse names that are not groups' in strictly ascending order, thousands at a time.

    All are looked at together; only where that finds fault they are looked at one by one.
    """
    check_group_names(names)
    if not all(map(lt, names, names[1:])):
        before, name = next(pair for pair in pairwise(names) if pair[0] >= pair[1])
        fault = Reason.DUPLICATE if name == before else Reason.BAD_STRUCTURE
        raise Malformed(fault, f"groups: {name!r} comes twice or out of order")


def check_group_names(names: Sequence[str]) -> None:
    """Refuse names that are not groups', thousands at a time."""
    lines = "\n".join((*names, ""))
    is_sized = max(map(len, names), default=0) <= NAME_MAX and lines.count("\n") == len(names)
    if not (is_sized and _GROUPS.fullmatch(lines)):
        for name in names:
            check_group(name)


def check_foreign_group(name: str) -> str:
    """Return `name` if it may name a group of stock Pulsar's, which checks less than rgd."""
    return _check_printable(name, "group")


def check_weight(weight: int) -> int:
    """Return `weight` if it is one of a broker, in thousandths."""
    if not 0 < weight <= WEIGHT_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"weight: expected 1 to {WEIGHT_MAX}, got {weight}")
    return weight


def check_count(value: int, what: str) -> int:
    """Return `value` if it is 0 to `COUNT_MAX`."""
    if not 0 <= value <= COUNT_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"{what}: expected 0 to {COUNT_MAX}")
    return value


def check_counts(values: Sequence[int], what: str) -> Sequence[int]:
    """Return `values` if each is 0 to `COUNT_MAX`."""
    if values and (min(values) < 0 or max(values) > COUNT_MAX):
        raise Malformed(Reason.BAD_NUMBER, f"{what}: expected numbers from 0 to {COUNT_MAX}")
    return values


def check_distinct(names: Iterable[str], what: str) -> None:
    """Refuse a name that comes twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise Malformed(Reason.DUPLICATE, f"{what}: {name} comes twice")
        seen.add(name)


def check_utf8(value: str | bytes, what: str) -> str:
    """Return the text; protobuf gives bytes for a proto2 string that is not UTF-8."""
    if isinstance(value, bytes):
        raise Malformed(Reason.BAD_NAME, f"{what}: is not UTF-8")
    return value


def _check_printable(name: str, what: str) -> str:
    if not _PRINTABLE.fullmatch(name):
        raise Malformed(Reason.BAD_NAME, f"{what}: expected 1 to {NAME_MAX} printable characters")
    return name
