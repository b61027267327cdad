"""Values of a lenient body, read as Jackson reads them for Pulsar.

Numbers may stand in quotes, fractions are cut off, an empty text and null say nothing. What Jackson
refuses is refused here too, naming the field. Which fields there are is `bodies`' business.
"""

import re
from typing import Final

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.shown import cut
from rgd.core.units import COUNT_MAX

INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = COUNT_MAX

_WRITTEN_MAX: Final = 10**40

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
            raise BadBody(_expected(name, most, repr(cut(said))))
    if said is None or said == "":
        return None
    value = int(said)
    if not -most - 1 <= value <= most:
        # Thousands of digits cannot even be written down.
        told = str(value) if abs(value) < _WRITTEN_MAX else "one of many digits"
        raise BadBody(_expected(name, most, told))
    return value


def _expected(name: str, most: int, said: str) -> str:
    return f"{name}: expected an integer from {-most - 1} to {most}, got {said}"


def flag(said: float | str | None, name: str) -> bool:
    """Read a flag; a number is true unless it is 0, and what says nothing is false.

    Raises:
        BadBody: naming the field.
    """
    if not isinstance(said, str):
        return bool(said)
    if (value := _FLAGS.get(said.strip())) is None:
        raise BadBody(f"{name}: expected true or false, got {cut(said)!r}")
    return value


def says_nothing(body: bytes) -> bool:
    """Whether a body is empty or null, which are one to Pulsar."""
    return body.strip() in {b"", b"null"}
