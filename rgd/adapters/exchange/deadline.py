"""How long a thread may go on waiting, over several blocking calls.

Law: `rest_s` never grows, and is 0 or less from the end on. Only waits of the adapters' own threads are bounded so:
nothing that the core computes depends on it. On the event loop it is `asyncio.timeout`.
`pulsar_connection` and `pulsar_reader` use it.
"""

import time


class Deadline:
    """The end of a wait that begins now.

    Args:
        wait_s: how long it is, in seconds.
    """

    def __init__(self, wait_s: float) -> None:
        self._end_s = _now_s() + wait_s

    @property
    def rest_s(self) -> float:
        """What is left, in seconds."""
        return self._end_s - _now_s()


def _now_s() -> float:
    return time.monotonic()  # noqa: TID251 - a thread that blocks has no loop whose time it could take
