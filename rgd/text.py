"""Text for people: what came from outside, cut and without control characters; and amounts."""

import re
import unicodedata
from typing import Final

#: Unicode's categories of characters that a terminal acts on instead of showing them.
_CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_URL_CREDENTIALS: Final = re.compile(r"(\w+://)[^/\s]*@")


def cut(text: str, chars_max: int) -> str:
    """The text, or its beginning and three dots: at most `chars_max` characters of it."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}..."


def without_credentials(text: str) -> str:
    """The text with names and passwords in its URLs replaced."""
    return _URL_CREDENTIALS.sub(r"\1[redacted]@", text)


def printable(text: str) -> str:
    """The text with its control characters as Python's escapes; a line feed stays."""
    if text.isprintable():
        return text
    return "".join(
        repr(char)[1:-1] if char != "\n" and unicodedata.category(char) in _CONTROLS else char
        for char in text
    )


def show(units: float | None, *, is_bytes: bool = False, empty: str = "-") -> str:
    """An amount or a rate for a table; `empty` stands for None."""
    if units is None:
        return empty
    if not is_bytes or abs(units) < 1000:
        return _plain(units)
    size, prefix = abs(units), ""
    for larger in "kMGTP":
        if size < 1000:
            break
        size, prefix = size / 1000, larger
    return f"{'-' if units < 0 else ''}{_plain(size, 2)}{prefix}B"


def count(number: int, one: str, several: str = "") -> str:
    """So many of something, in words; several of them have an s unless it is given."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def _plain(units: float, digits: int = 1) -> str:
    # A rate below 1 is not shown as 0.
    digits = digits if abs(units) >= 1 else 3
    text = f"{units:,.{digits}f}"
    text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text
