"""How long the parts of a policies table wait."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pauses:
    """All in seconds.

    Attributes:
        backoff_s: before the first, second, ... attempt to reach the table; the last one for all that follow.
        read_back_s: longest from writing a record to reading it back.
        turn_s: longest that our next change of a policy waits for a daemon whose change lost to ours (`turns`).
        refill_s: before records that the table did not accept are written again (`filling`).
        repair_s: between two checks for policies whose last record does not count (`repairing`).
        keep_s: least from one store on disk to the next (`keeping`).
    """

    backoff_s: tuple[float, ...] = (0.0, 0.1, 0.2, 0.5, 1.0)
    read_back_s: float = 4.0
    turn_s: float = 1.0
    refill_s: float = 1.0
    repair_s: float = 1.0
    keep_s: float = 1.0
