"""Reads many parts of a stock Pulsar with few calls at a time, and survives those that fail.

Law: an unreadable part keeps its known value and is reported as a fault. A part that Pulsar says does not
exist, or that another broker owns, is gone. After `UNREACHED_MAX` calls without an answer everything fails.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from rgd.adapters.stock.client import CONNECTIONS_MAX, Missing, Moved
from rgd.core.errors import CoreError
from rgd.errors import RgdError
from rgd.ports.stock import StockDown, StockError

#: Most faults of one poll that are reported (further unreadable parts also keep their values), and most calls
#: without an answer before it fails.
FAULTS_MAX: Final = 100
UNREACHED_MAX: Final = 20

_Part = TypeVar("_Part")


class PartReads:
    """The reads of one poll, `CONNECTIONS_MAX` at a time."""

    def __init__(self) -> None:
        self._unreached = 0
        self._gave_up: StockDown | None = None
        #: Why parts cannot be read, by the path of the call.
        self.faults: dict[str, str] = {}
        #: Names that do not exist (any more), or whose broker is another one.
        self.gone: list[str] = []
        #: The last name that was begun.
        self.last: str | None = None

    async def each(
        self,
        names: Sequence[str],
        read: Callable[[str], Awaitable[_Part]],
        known: Mapping[str, _Part],
        *,
        path: str,
        seconds: float = math.inf,
    ) -> dict[str, _Part]:
        """Read a part for each name, in order; an unchanged part stays the same object.

        Args:
            names: of the parts.
            read: reads one.
            known: the values of parts that cannot be read.
            path: what the names are, for the faults.
            seconds: begin no further part after this time.

        Raises:
            StockDown: too many calls had no answer.
        """
        found: dict[str, _Part] = {}
        pending = iter(dict.fromkeys(names))
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds

        async def work() -> None:
            # Looks at the clock first: a name that was taken from `pending` must be read.
            while self._gave_up is None and loop.time() < until:
                name = next(pending, None)
                if name is None:
                    return
                self.last = name
                before = known.get(name)
                try:
                    part = await read(name)
                except (Missing, Moved):
                    self.gone.append(name)
                except (StockError, CoreError) as error:
                    self.fault(f"{path}/{name}", error)
                    if before is not None:
                        found[name] = before
                else:
                    found[name] = part if before is None or part != before else before

        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(CONNECTIONS_MAX, len(names))):
                tasks.create_task(work())
        if self._gave_up is not None:
            raise self._gave_up
        return found

    def fault(self, what: str, error: RgdError) -> None:
        """Report an unreadable part."""
        if len(self.faults) < FAULTS_MAX:
            self.faults[what] = str(error)
        if isinstance(error, StockDown):
            self._unreached += 1
            if self._unreached == UNREACHED_MAX:
                self._gave_up = StockDown(
                    f"{self._unreached} calls without an answer, the last: {error}"
                )
