"""Estimates how far brokers' own clocks are from one common time, by the order of received messages.

A record of A that had received B's report s was made after B made s, and the other way round; so every
sighting (`rgd.analysis.timelines`) bounds the difference of two clocks from one side. Reports go both
ways every round, so the bounds of both sides leave about a round between them, and the middle is taken.

Law: bounds hold whatever was lost, doubled or late, because a lost or late report only loosens them. The
narrowest bounds count, so a few late reports change nothing. Bounds that contradict each other by more than
`SLACK_ROUNDS` are of clocks that ran apart, or that jumped unnoticed: no offset is estimated for them.

A wall clock that the bounds do not contradict is believed: where records are few, the middle may be rounds off.

The span that most others can be compared with, and whose wall clock most of them confirm, has the common time; then come
those that can be compared with it, then those that these can be compared with.
"""

from typing import Final

import numpy as np

from rgd.analysis.row_columns import Floats
from rgd.analysis.timelines import Records

#: By how many rounds bounds may contradict each other or a wall clock, because clocks run apart while one offset is estimated.
SLACK_ROUNDS: Final = 1.0


def find_offsets(records: Records, round_ms: float) -> Floats:
    """[spans] what is to be added to a span's own clock for the common time, ms; NaN where that is unknown."""
    spans = len(records.first)
    offsets = np.full(spans, np.nan)
    is_other = records.timeline[records.later] != records.timeline[records.earlier]
    later, earlier = records.later[is_other], records.earlier[is_other]
    # Of two spans, the most that the offset of the seen one may be above that of the one that saw it.
    pairs, pair = np.unique(
        records.span[later] * spans + records.span[earlier], return_inverse=True
    )
    above = np.full(len(pairs), np.inf)
    np.minimum.at(above, pair, records.local_ms[later] - records.local_ms[earlier])
    saw, was_seen = pairs // spans, pairs % spans
    slack_ms = SLACK_ROUNDS * round_ms
    # How far wall clocks are ahead of the own clocks.
    ahead_ms = np.bincount(records.span, records.clock_ms - records.local_ms)
    wall = np.asarray(ahead_ms / np.bincount(records.span), np.float64)
    is_refuted = wall[was_seen] - wall[saw] > above + slack_ms
    is_refuted |= np.isin(was_seen * spans + saw, pairs[is_refuted])
    # Where all are refuted, the one that saw most.
    trust = np.where(is_refuted[pair], 1e-9, 1.0)
    first = np.bincount(records.span[later], trust, spans).argmax()
    wall -= wall[first]
    offsets[first] = 0.0
    while True:
        high, low = np.full(len(offsets), np.inf), np.full(len(offsets), -np.inf)
        np.fmin.at(high, was_seen, offsets[saw] + above)
        np.fmax.at(low, saw, offsets[was_seen] - above)
        width = high - low
        is_found = np.isnan(offsets) & np.isfinite(width) & (width >= -slack_ms)
        if not is_found.any():
            return offsets
        low, high = low[is_found], high[is_found]
        known = wall[is_found]
        is_right = (low - slack_ms <= known) & (known <= high + slack_ms)
        offsets[is_found] = np.where(is_right, known, (high + low) / 2)
