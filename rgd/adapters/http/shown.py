"""Cuts what came from outside before it is shown to anybody.

Law: no reason is longer than `REASON_CHARS_MAX`, and nothing that a caller sent takes more than
`SHOWN_CHARS_MAX` of it, however long it came in.
"""

from typing import Final

from rgd.text import cut as cut_at

#: Longest reason, in characters.
REASON_CHARS_MAX: Final = 512

#: Most characters of what a caller sent.
SHOWN_CHARS_MAX: Final = 60


def cut(text: str) -> str:
    """What a caller sent, of readable length."""
    return cut_at(text, SHOWN_CHARS_MAX)


def cut_reason(reason: str) -> str:
    """A reason of readable length, whatever it quotes."""
    return cut_at(reason, REASON_CHARS_MAX)
