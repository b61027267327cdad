"""Learns which part of unsaid refusals was new work.

Once a group refuses nothing, what is offered is what was new all along. So each time refusals end, the part
of them that has proved new is remembered, and as much of the next ones is believed. Without this a flow
close to its share flaps: a few refusals look like a multiple, the share grows, and falls again. The belief
grows back while refusals go on, because demand may have grown.
"""

from typing import Final

import numpy as np

from rgd.core.demand.marks import Floats
from rgd.core.demand.slots import Slots

#: Nobody retries more than this often before it is taken for new work, in the long run.
PART_LEAST: Final = 1 / 64

#: By how much the belief grows in each round that refuses from its begin to its end.
REGROWTH: Final = 1.25

#: Refusals of less than this part of what was admitted teach nothing: chance is larger.
TAUGHT_LEAST: Final = 0.1


def learn_credit(of: Slots, admitted: Floats, unsaid: Floats, offered: Floats) -> None:
    """Learn what part of unsaid refusals was new, from a round's end; `of.doubt` is the rest.

    Args:
        of: the rows.
        admitted: [rows, 2] rates in the window.
        unsaid: [rows, 2] rates of refused work that said no attempt.
        offered: [rows, 2] what was measured; 0 where nothing was asked.
    """
    part = 1 - of.doubt
    refused = unsaid > 0
    grows = refused & (of.last_unsaid > 0) & ~of.was_clear[:, None]
    taught = ~refused & (offered > 0) & (of.last_unsaid > TAUGHT_LEAST * of.last_admitted)
    proved = (offered - of.last_admitted) / np.where(taught, of.last_unsaid, 1)
    proved = np.clip(proved, PART_LEAST, 1)
    # A fall is believed at once, as it costs others; a rise by halves.
    learnt = np.where(proved < part, proved, (part + proved) / 2)
    part = np.where(grows, np.minimum(1, part * REGROWTH), np.where(taught, learnt, part))
    of.doubt[...] = 1 - part
    of.last_admitted[...] = np.where(refused, admitted, of.last_admitted)
    of.last_unsaid[...] = np.where(refused, unsaid, np.where(offered > 0, 0, of.last_unsaid))
