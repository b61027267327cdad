"""Divides a round that is too large for one entry of the usage log (docs/decisions/0024).

Law: the parts of a round have each of its rows and each of its peers once, everything else is the same in
every part, and each part can be encoded (`rgd.wire.log_records`) with any numbers and names, because sizes
are the most that a row or a peer may need. A round that fits is its only part.

Rows are divided in place; `rgd.wire.log_records` sorts each part separately.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from rgd.core.exchange.messages import RoundRecord
from rgd.wire.frame import PAYLOAD_MAX
from rgd.wire.parts import runs
from rgd.wire.record import PEERS_MAX

#: The most bytes of a row without its group's name: varints of at most 10 bytes in every column.
ROW_BYTES_MAX: Final = 340
#: The most bytes of a peer without its name: two tags, a length, a sequence.
PEER_BYTES_MAX: Final = 24

#: What the rows and the peers of one part may need, in bytes; what is left is for the names and
#: numbers that every part has.
PART_ROWS_BYTES: Final = PAYLOAD_MAX * 7 // 10
PART_PEERS_BYTES: Final = PAYLOAD_MAX // 5

#: The most bytes of one letter.
_UTF8_MAX: Final = 4


def parts_of(record: RoundRecord) -> Iterator[RoundRecord]:
    """The parts of a round in order, each as small as an entry must be."""
    groups = record.rows.usage.groups
    rows = runs([ROW_BYTES_MAX + len(group) for group in groups], PART_ROWS_BYTES)
    names = [PEER_BYTES_MAX + _UTF8_MAX * len(broker) for broker, _ in record.peers]
    peers = runs(names, PART_PEERS_BYTES, PEERS_MAX)
    count = max(len(rows), len(peers), 1)
    if count == 1:
        yield record
        return
    # What is counted in all, not by group, is in the first part only: readers add up.
    counted = replace(record, ungoverned=0, unknown_granted=0, unknown_refused=0)
    for part, (of_rows, of_peers) in enumerate(zip_longest(rows, peers, fillvalue=(0, 0)), 1):
        yield replace(
            record if part == 1 else counted,
            rows=record.rows.take(slice(*of_rows)),
            peers=record.peers[slice(*of_peers)],
            peer_incarnations=record.peer_incarnations[slice(*of_peers)],
            part=part,
            parts=count,
        )
