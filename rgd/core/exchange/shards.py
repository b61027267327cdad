"""Shards: which topic of the exchange a group's rows are sent on.

Law: a group's shard depends on its name and the number of shards alone, so all daemons agree on it. Each
sender numbers and hashes its reports of each shard separately (docs/decisions/0041).

A `layout` is a number of shards. The layout of one shard is the exchange's own topic (`WHOLE`). With more
shards that topic carries only what concerns members: hellos, goodbyes, requests and heartbeats.
"""

from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

#: Most layouts that a daemon sends its rows in at a time, its own included: two while the number of shards is
#: changed, and one more if the change is taken back.
LAYOUTS_MAX: Final = 3

#: The number of a shard, by row or slot id.
Numbers = NDArray[np.int64]
#: Hashes of groups' names, by row or slot id.
NameHashes = NDArray[np.uint32]


class Shard(NamedTuple):
    """Part `number` of `of` parts of all groups."""

    number: int = 0
    of: int = 1


#: All groups, on the exchange's own topic.
WHOLE: Final = Shard()


def name_hash(group: str) -> int:
    """The hash that decides a group's shard: CRC-32 (RFC 1952) of its name in UTF-8."""
    return crc32(group.encode())


def numbers_of(hashes: NameHashes, count: int) -> Numbers:
    """[rows] the numbers of the groups' shards among `count`."""
    return hashes.astype(np.int64) % count


def shard_of(group: str, count: int) -> Shard:
    """The shard of one group among `count`."""
    return Shard(name_hash(group) % count, count)
