"""How long the parts of a policies table wait."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pauses:
    """All in seconds.

    Attributes:
        reach_s: between the first two attempts to reach the table; the pauses grow up to `reach_s_max` (`rgd.backoff`).
        reach_s_max: between later attempts.
        read_back_s: longest from writing a record to reading it back.
        mend_s: between two checks for policies whose last record does not count, and before records that the table did not
            accept are written again (`mending`).
        keep_s: least from one store on disk to the next (`keeping`).
    """

    reach_s: float = 0.1
    reach_s_max: float = 1.0
    read_back_s: float = 4.0
    mend_s: float = 1.0
    keep_s: float = 1.0
