"""What a plane does with the groups of a gate whose plane has gone.

Laws: the gate goes on with the shares that it has until this broker knows its own, and no share moves on account of the
takeover. So the mode stays `STARTING` until the peers' states and this broker's own, which it sends after its first whole
round, have come back; until then its peers keep the rows that the former plane sent (`Publisher`). Of what the gate counted
before, nothing is counted again; what the former plane had not logged of its open round is in no record.
"""

import numpy as np

from rgd.core.broker.events import GroupsResumed
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.sharing import Sharing
from rgd.core.exchange.columns import rates
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex
from rgd.core.gate.port import Gate


def resume(
    event: GroupsResumed, index: GroupIndex, sharing: Sharing, rounds: Rounds, gate: Gate
) -> None:
    """Give groups slot ids, and count what follows of them; their shares stay."""
    groups = sharing.snapshot.groups
    gate.drop([key for key, _share in event.groups if key.group not in groups])
    known = [one for one in event.groups if one[0].group in groups]
    slots = index.slots_of([key for key, _share in known])
    sharing.give_slots([known[at][0] for at in np.flatnonzero(slots == NO_SLOT)], event.now)
    fresh = np.flatnonzero((slots != NO_SLOT) & ~sharing.is_in_use(slots))
    shares = rates(known[at][1] for at in fresh)
    sharing.hold(slots[fresh], shares, event.now)
    given = [(known[at][0], int(slots[at])) for at in fresh]
    rounds.resume(*gate.resume(given), event.now)
