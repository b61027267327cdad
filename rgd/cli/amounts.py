"""Amounts in human-readable form: `5M`, `1.5Gi`, `none`; 5MB, 333.3.

Law: "no limit" is written `unlimited` or `none`. 0 is refused, because it reads like "nothing passes" and
means the opposite elsewhere (docs/decisions/0008).
"""

import re
from typing import Final

from rgd.core.units import COUNT_MAX

NO_LIMIT: Final = ("unlimited", "none")

_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][0-9]{1,2})?)\s*([kKMGTP]?i?)(B?)(?:/s)?")
_FACTORS: Final = {"": 1} | {
    unit: factor
    for power, prefix in enumerate("kMGTP", start=1)
    for unit, factor in (
        (prefix, 1000**power),
        (prefix.upper(), 1000**power),
        (f"{prefix.upper()}i", 1024**power),
        (f"{prefix}i", 1024**power),
    )
}

#: What `parse_rate` takes, as the end of the sentence "expected ...".
EXPECTED: Final = (
    f"a number above 0, such as 500, 5M or 1Gi, or {' or '.join(NO_LIMIT)} for no limit"
)


def parse_rate(text: str) -> float | None:
    """Units per second from text; None is no limit.

    Raises:
        ValueError: it is no rate, or 0.
    """
    if text.strip().lower() in NO_LIMIT:
        return None
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or match[2] not in _FACTORS:
        raise ValueError(text)
    units = float(match[1]) * _FACTORS[match[2]]
    if not 0 < units <= COUNT_MAX:
        raise ValueError(text)
    return int(units) if units.is_integer() else units
