"""Cuts what came from outside before it is shown to anybody.

Law: no reason is longer than `REASON_CHARS_MAX`, and nothing that a caller sent takes more than
`SHOWN_CHARS_MAX` of it, however long it came in.
"""

from typing import Final

#: Longest reason, in characters.
REASON_CHARS_MAX: Final = 512

#: Most characters of what a caller sent.
SHOWN_CHARS_MAX: Final = 60


def cut(text: str, chars_max: int = SHOWN_CHARS_MAX) -> str:
    """The text, or its beginning and three dots."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}..."


def cut_reason(reason: str) -> str:
    """A reason of readable length, whatever it quotes."""
    return cut(reason, REASON_CHARS_MAX)
