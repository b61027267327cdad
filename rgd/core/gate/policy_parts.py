"""Policies as they cross from plane to gate: what changed, in parts, and then a word to put them in force.

Laws: the snapshot that `PolicyParts` makes decides every request as the plane's would: it has its groups, attachments
and limits. Nothing of a part is in force before that. A change costs what it changes; policies that were loaded anew
are sent whole. A part has at most `PART_ENTRIES` entries, so that none takes the gate much longer than half a millisecond.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from rgd.core.policies.model import LocalLimit
from rgd.core.policies.snapshot import DECIDING_TABLES, PolicySnapshot, snapshot_of
from rgd.core.policies.table import TableWriter, changed_keys

#: Most entries of a part.
PART_ENTRIES: Final = 200


class Part(NamedTuple):
    """Some entries of a table of policies."""

    table: str
    #: Whether it takes the place of all that the table had.
    replaces: bool
    put: Mapping[Any, Any]
    removed: tuple[Any, ...] = ()


def parts_between(before: PolicySnapshot | None, after: PolicySnapshot) -> Iterator[Part]:
    """The parts that make the policies `after` of those `before`; None: of none, or of unknown ones."""
    for table in DECIDING_TABLES:
        get = attrgetter(table)
        entries = get(after)
        changed = None if before is None else changed_keys(get(before), entries, PART_ENTRIES)
        if changed is None:
            yield from _whole(table, entries)
        elif changed:
            put = {key: entries[key] for key in changed if key in entries}
            yield Part(
                table,
                replaces=False,
                put=put,
                removed=tuple(key for key in changed if key not in entries),
            )


def _whole(table: str, entries: Mapping[Any, Any]) -> Iterator[Part]:
    left, is_first = iter(entries.items()), True
    while (put := dict(islice(left, PART_ENTRIES))) or is_first:
        yield Part(table, is_first, put)
        is_first = False


class PolicyParts:
    """The policies that the gate was sent."""

    def __init__(self) -> None:
        self._writers: dict[str, TableWriter[Any, Any]] = {
            of: TableWriter() for of in DECIDING_TABLES
        }

    def take(self, part: Part) -> None:
        """Take a part; it is in no snapshot that was made before."""
        if part.replaces:
            self._writers[part.table] = TableWriter()
        writer = self._writers[part.table]
        for key, value in part.put.items():
            writer.put(key, value)
        for key in part.removed:
            writer.remove(key)

    def snapshot(self, of_broker: LocalLimit) -> PolicySnapshot:
        """The policies of all parts so far.

        Args:
            of_broker: the limit of all traffic of this broker.
        """
        tables = {of: writer.table() for of, writer in self._writers.items()}
        # Nothing that decides requests reads which namespaces exist.
        return snapshot_of(tables, of_broker, ())
