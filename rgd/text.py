"""Text that came from outside, before it is shown to anybody: cut, and without control characters."""

import unicodedata
from typing import Final

#: Unicode's categories of characters that a terminal acts on instead of showing them.
_CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def cut(text: str, chars_max: int) -> str:
    """The text, or its beginning and three dots: at most `chars_max` characters of it."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}..."


def printable(text: str) -> str:
    """The text with its control characters as Python's escapes; a line feed stays."""
    if text.isprintable():
        return text
    return "".join(
        repr(char)[1:-1] if char != "\n" and unicodedata.category(char) in _CONTROLS else char
        for char in text
    )
