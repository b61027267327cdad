"""Learns which part of unsaid refusals (refused work without an attempt) was new work.

Once a group refuses nothing, the offered work is what was new all along. Each time refusals end,
the part of them that proved to be new is stored, and the same part of later ones is believed.
Without this, a flow close to its share oscillates: a few refusals look like a multiple of the
demand, the share grows, and falls again. The believed part grows again while refusals continue,
because demand may have grown.
"""

from typing import Final

import numpy as np

from rgd.core.demand.marks import Floats
from rgd.core.demand.slots import Slots

#: Least part that is believed: sustained retries beyond 64 per request count as new work.
PART_LEAST: Final = 1 / 64

#: Factor by which the believed part grows in each round that refuses from its begin to its end.
REGROWTH: Final = 1.25

#: Refusals below this part of the admitted work teach nothing, because random variation is larger.
TAUGHT_LEAST: Final = 0.1


def learn_credit(of: Slots, admitted: Floats, unsaid: Floats, offered: Floats) -> None:
    """Learn at a round's end what part of unsaid refusals was new; `of.doubt` is the rest.

    Args:
        of: the rows.
        admitted: [rows, 2] rates in the window, Milli per second.
        unsaid: [rows, 2] rates of refused work without an attempt.
        offered: [rows, 2] measured rates of new work; 0 where there were no requests.
    """
    part = 1 - of.doubt
    refused = unsaid > 0
    grows = refused & (of.last_unsaid > 0) & ~of.was_clear[:, None]
    taught = ~refused & (offered > 0) & (of.last_unsaid > TAUGHT_LEAST * of.last_admitted)
    proved = (offered - of.last_admitted) / np.where(taught, of.last_unsaid, 1)
    proved = np.clip(proved, PART_LEAST, 1)
    # A decrease is believed at once, because a high value costs other brokers; an increase by
    # halves.
    learnt = np.where(proved < part, proved, (part + proved) / 2)
    part = np.where(grows, np.minimum(1, part * REGROWTH), np.where(taught, learnt, part))
    of.doubt[...] = 1 - part
    of.last_admitted[...] = np.where(refused, admitted, of.last_admitted)
    of.last_unsaid[...] = np.where(refused, unsaid, np.where(offered > 0, 0, of.last_unsaid))
