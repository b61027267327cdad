"""What a plane begins with; the gate has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rgd.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Birth:
    """A plane's settings and identity."""

    settings: Settings
    #: Of the exchange; the embedded one is the gate's.
    url: str
    incarnation: int
    #: The sequences that the plane before noted; None: it is the first.
    former: Mapping[tuple[int, int], int] | None
    #: What the gate has logged.
    logged: tuple[dict[str, Any], ...] = ()
