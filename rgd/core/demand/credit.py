"""Learns which part of unsaid refusals (refused work without an attempt) was new work.

Once a group refuses nothing, what is admitted is what was new all along. Each time refusals end,
the part of them that proved to be new moves the part of later ones that is believed. Without this,
a flow close to its share oscillates: a few refusals look like a multiple of the demand, the share
grows, and falls again.

How far it moves is the weight of the evidence, 0 to 1: what it proves varies by the random variation
of the admitted work, as a part of what was refused, so the weight is that of a Kalman filter.
Refusals that end because demand itself has fallen prove nothing (docs/decisions/0050).
"""

from typing import Final

import numpy as np

from rgd.core.demand.marks import Floats
from rgd.core.demand.slots import Slots

#: Least part that is believed, so that demand that grows while it is refused is found: more than 16
#: attempts at a request count as new work.
PART_LEAST: Final = 1 / 16

#: Demand has fallen if less than this part of what was admitted while work was refused is admitted
#: now; random variation is mostly smaller.
FALLEN_BELOW: Final = 0.5


def learn_credit(of: Slots, admitted: Floats, unsaid: Floats) -> None:
    """Learn at a round's end what part of unsaid refusals was new; `of.doubt` is the rest.

    Args:
        of: the rows.
        admitted: [rows, 2] rates in the window, Milli per second.
        unsaid: [rows, 2] rates of refused work without an attempt.
    """
    refused = unsaid > 0
    before, unsaid_before = of.last_admitted, of.last_unsaid
    taught = ~refused & (unsaid_before > 0) & (admitted > 0)
    taught &= admitted >= FALLEN_BELOW * before
    if taught.any():
        divisor = np.where(taught, unsaid_before, 1)
        proved = (admitted - before) / divisor
        weight = 1 / (1 + (before / divisor) ** 2)
        part = 1 - of.doubt
        part = np.clip(part + weight * (proved - part), PART_LEAST, 1)
        np.copyto(of.doubt, 1 - part, where=taught)
    np.copyto(before, admitted, where=refused)
    unsaid_before[...] = np.where(refused, unsaid, np.where(admitted > 0, 0, unsaid_before))
