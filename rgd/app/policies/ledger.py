"""Which of a policies table's records count: the log of a table, read in its topic's order.

Law: of each key that record counts which first came with the highest revision. So every daemon that
reads the topic makes the same of it, and a record written upon what its writer knew counts only if
nobody was faster: a compare-and-set, decided by the topic's order and by nobody's clock or name.
What counts is never overtaken by a record that was written before it was known.

A topic that is compacted keeps the last record of a key, which need not be the one that counts. Such
keys are `misplaced`, until a record that counts stands last again; who writes that is `table`'s
business. A policy of the groups file that is in no table yet has revision 0.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from rgd.core.policies.book import PolicyBook
from rgd.core.policies.records import PolicyRecord, PolicyRecords, Value


class Taken(NamedTuple):
    """What became of a record."""

    #: Whether it is now the one of its key that counts.
    counts: bool
    #: Whether the book changed with it: a seed that is read back changes nothing.
    is_news: bool


class Ledger:
    """The records of a table that count, and the book they make."""

    def __init__(self, seeds: Iterable[PolicyRecord]) -> None:
        self._records = PolicyRecords()
        #: Keys that the groups file has and the table, as far as it was read, has not.
        self.unseeded: set[str] = set()
        #: By key the record that stands last in the topic, although another one counts.
        self.misplaced: dict[str, PolicyRecord] = {}
        for seed in seeds:
            self._records.apply(replace(seed, revision=0))
            self.unseeded.add(seed.key)

    def take(self, record: PolicyRecord) -> Taken:
        """Take in the topic's next record."""
        known = self._records.get(record.key)
        if known is None or record.revision > known.revision:
            self._records.apply(record)
            self.unseeded.discard(record.key)
            self.misplaced.pop(record.key, None)
            return Taken(counts=True, is_news=known is None or known.value != record.value)
        if (record.revision, record.value) == (known.revision, known.value):
            # Whoever reads this one alone knows as much.
            self.misplaced.pop(record.key, None)
        else:
            self.misplaced[record.key] = record
        return Taken(counts=False, is_news=False)

    def get(self, key: str) -> PolicyRecord | None:
        """The record of a key that counts; a tombstone counts too."""
        return self._records.get(key)

    def value(self, key: str) -> Value:
        """What is in force under a key; None: nothing, or that it was deleted."""
        return self._records.value(key)

    def next(self, key: str, value: Value, writer: str) -> PolicyRecord:
        """Make the record that replaces what is known of `key`; takes nothing in."""
        return self._records.next(key, value, writer)

    def book(self) -> PolicyBook:
        """The book that the records make."""
        return self._records.book()
