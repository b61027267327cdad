"""Decides which of a policies table's records count, by reading them in the topic's order.

Law: for each key, the first record with the highest revision counts. So every daemon that
reads the topic gets the same result. A record counts only if no other daemon wrote the next revision
first: this is a compare-and-set, decided by the topic's order and by no clock or name.
A valid record is never replaced by one whose writer did not know it. (At `REVISION_MAX`
there is no higher revision, and the last record counts.)

Records from other sources (the groups file with revision 0, the disk, a topic that was read before)
are `lacking` until the table has a record of the key that is at least as new, which then counts.
Lacking records are written to the table (`mending`). So an emptied or replaced table gets all records
back, deletions too, and daemons with different knowledge agree again.

A compacted topic keeps the last record of a key, which may not be the one that counts. Such
keys are `misplaced` until a valid record is last again (`mending`).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from typing_extensions import override

from rgd.core.policies.records import KEYS_MAX, REVISION_MAX, PolicyRecord, PolicyRecords
from rgd.wire.errors import WireError
from rgd.wire.policies import hash_of_digests, policy_digest


class Taken(NamedTuple):
    """The result of reading a record."""

    #: Whether it is now the one of its key that counts.
    counts: bool
    #: Whether the snapshot changed with it: a seed that is read back changes nothing.
    is_news: bool


class Ledger(PolicyRecords):
    """The records of a table that count (those of revision 0 are only the groups file's), and their snapshot.

    Args:
        seeds: the policies of a groups file.
        known: the last known content of the table, which overrides the seeds.
    """

    def __init__(self, seeds: Iterable[PolicyRecord], known: Iterable[PolicyRecord] = ()) -> None:
        super().__init__()
        #: The sum of the digests of the policies in force.
        self._sum = 0
        #: Known keys that the table, as far as it was read, lacks.
        self.lacking: set[str] = set()
        #: By key, the last record in the topic where another one counts.
        self.misplaced: dict[str, PolicyRecord] = {}
        #: Records of the two that no table could hold: key and reason.
        self.unusable: list[tuple[str, str]] = []
        for record in (*(replace(seed, revision=0) for seed in seeds), *known):
            try:
                self.put(record)
            except WireError as error:
                self.unusable.append((record.key, str(error)))
            else:
                self.lacking.add(record.key)

    def take(self, record: PolicyRecord) -> Taken:
        """Apply the topic's next record."""
        known = self.get(record.key)
        if known is not None and not self._counts(record, known):
            if record.key in self.lacking:
                pass  # What is known will be written after it.
            elif (record.revision, record.value) == (known.revision, known.value):
                # Whoever reads this one alone knows as much.
                self.misplaced.pop(record.key, None)
            else:
                self.misplaced[record.key] = record
            return Taken(counts=False, is_news=False)
        self.lacking.discard(record.key)
        self.misplaced.pop(record.key, None)
        is_news = known is None or known.value != record.value
        self.put(record)
        return Taken(counts=True, is_news=is_news)

    @override
    def put(self, record: PolicyRecord) -> None:
        known = self.value(record.key)
        if record.value != known:
            self._sum += policy_digest(record.key, record.value) - policy_digest(record.key, known)
        super().put(record)

    def is_too_many(self, key: str) -> bool:
        """Whether a key exceeds the maximum number of keys."""
        return len(self) >= KEYS_MAX and key not in self

    def leave(self, key: str) -> None:
        """Leave a key alone whose record only a later rgd can read."""
        self.lacking.discard(key)
        self.misplaced.pop(key, None)

    def hide(self, key: str) -> None:
        """Note that the last record of a key in the topic is no policy."""
        if key in self and key not in self.lacking:
            self.misplaced[key] = PolicyRecord(key, 0, "", None)

    def doubt(self) -> None:
        """Reset what is known of the table's own records before it is read from its start."""
        self.lacking = self.keys()
        self.misplaced.clear()

    @property
    def hash(self) -> int:
        """A hash of the policies in force: 1 to 2^63 - 1, the same for the same policies."""
        return hash_of_digests(self._sum)

    def _counts(self, record: PolicyRecord, known: PolicyRecord) -> bool:
        if record.key in self.lacking or record.revision == REVISION_MAX:
            return record.revision >= known.revision
        return record.revision > known.revision
