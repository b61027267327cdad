"""Learns which part of a caller's unsaid refusals was new work.

While a group refuses, retries and new work look alike (`rgd.core.demand.bound`);
once it refuses nothing, what is offered is what was new all along. So each time
refusals end, the part of them that has proved new is remembered, and as much of
the next ones is believed. Callers that give up prove new; of callers that come
back twenty times about a twentieth does. Without this a flow close to its share
flaps: a few refusals look like a multiple, the share grows, and falls again.

The belief grows back while refusals go on: demand that really grew is found in
a few rounds, and a flow far above its share, whose excess does not matter to
anybody's share, is believed in full.
"""

from typing import Final

#: Nobody retries more than this often before it is taken for new work, in the long run.
PART_LEAST: Final = 1 / 64

#: By how much the belief grows in each round that refuses from its begin to its end.
REGROWTH: Final = 1.25

#: Refusals of less than this part of what was admitted teach nothing: chance is larger.
TAUGHT_LEAST: Final = 0.1


class Credit:
    """One dimension's belief in unsaid refusals."""

    __slots__ = ("_admitted", "_unsaid", "part")

    def __init__(self) -> None:
        #: The part that is believed, from `PART_LEAST` to 1.
        self.part = 1.0
        #: Rates while there were refusals last; 0 when they taught already.
        self._admitted = self._unsaid = 0.0

    def refused(self, admitted: float, unsaid: float, *, throughout: bool) -> None:
        """Take note of a round that refused unsaid work, in rates of any unit."""
        if self._unsaid and throughout:
            self.part = min(1.0, self.part * REGROWTH)
        self._admitted, self._unsaid = admitted, unsaid

    def cleared(self, offered: float) -> None:
        """Learn from a round that refused nothing."""
        unsaid, self._unsaid = self._unsaid, 0.0
        if unsaid <= TAUGHT_LEAST * self._admitted:
            return
        proved = min(1.0, max(PART_LEAST, (offered - self._admitted) / unsaid))
        # A fall is believed at once, as it costs others; a rise by halves.
        self.part = proved if proved < self.part else (self.part + proved) / 2
