"""Values of a lenient body, read as Jackson reads them for Pulsar.

Numbers may stand in quotes, fractions are cut off, an empty text and null say nothing. What Jackson
refuses is refused here too, naming the field. Which fields there are is `bodies`' business.
"""

import re
from typing import Final

from rgd.adapters.http.errors import BadBody
from rgd.core.units import COUNT_MAX

INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = COUNT_MAX

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,19}")
_FLAGS: Final = {"": False, **dict.fromkeys(("true", "True", "TRUE"), True)} | dict.fromkeys(
    ("false", "False", "FALSE"), False
)


def integer(said: float | str | None, name: str, most: int) -> int | None:
    """Read an integer from `-most - 1` to `most`; None where the field says nothing.

    Raises:
        BadBody: naming the field.
    """
    if isinstance(said, str):
        said = said.strip()
        if said and not _INTEGER.fullmatch(said):
            raise BadBody(f"{name}: expected an integer from {-most - 1} to {most}, got {said!r}")
    if said is None or said == "":
        return None
    value = int(said)
    if not -most - 1 <= value <= most:
        raise BadBody(f"{name}: expected an integer from {-most - 1} to {most}, got {value}")
    return value


def flag(said: float | str | None, name: str) -> bool:
    """Read a flag; a number is true unless it is 0, and what says nothing is false.

    Raises:
        BadBody: naming the field.
    """
    if not isinstance(said, str):
        return bool(said)
    if (value := _FLAGS.get(said.strip())) is None:
        raise BadBody(f"{name}: expected true or false, got {said!r}")
    return value


def says_nothing(body: bytes) -> bool:
    """Whether a body is empty or null, which are one to Pulsar."""
    return body.strip() in {b"", b"null"}
