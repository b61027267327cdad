"""What a plane begins with; the gate has it."""

from dataclasses import dataclass

from rgd.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Birth:
    """A plane's settings and identity."""

    settings: Settings
    #: Of the exchange; the embedded one is the gate's.
    url: str
    incarnation: int
