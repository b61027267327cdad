"""How much work something does, counted in calls, so that no clock decides a test."""

import sys
from collections.abc import Callable


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, of Python and of C, while it does something."""
    count = 0

    def note(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
