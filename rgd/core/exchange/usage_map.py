"""The usage map of PIP-82: group -> broker -> usage, as received from the exchange.

Laws: it holds exactly what each broker advertised last, including this one (as read back from the
topic), so all daemons that received the same messages hold the same. A row of zeros removes the
broker from the group, as in PIP-82.

With shards, a broker's rows of each shard come in reports of their own and are held and hashed separately
(`rgd.core.exchange.shards`); a row belongs to the shard of its group.

Rows are columns (`row_store`). Three indexes find them: by broker and slot id (`BrokerRows`), by
group (`group_regions`), and by the numbers of a sender's dictionary encoding (`known_rows`). A
report of thousands of rows therefore takes a few passes of numpy, and so does gathering the rows of
the groups that it changed.

The hash of a broker's rows is computed on demand, and kept until one of them changes.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rgd.core.errors import InvariantBroken
from rgd.core.exchange.columns import Flags, Ints, UsageColumns
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex
from rgd.core.exchange.group_regions import GroupRegions
from rgd.core.exchange.known_rows import KnownRows
from rgd.core.exchange.messages import ALL_ROWS, Report, Span
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.core.exchange.row_store import NO_ROW, Amounts, BrokerRows, RowStore
from rgd.core.exchange.rows_hash import HASH_MASK, row_hashes
from rgd.core.exchange.shards import WHOLE, Shard, numbers_of
from rgd.core.policies.model import GroupKey
from rgd.core.runs import Places, indexes_of, run_of
from rgd.core.units import Pair

_NO_PLACES: Final[Ints] = np.zeros(0, np.int64)


class StoredRow(NamedTuple):
    """The last row that one broker advertised of one group."""

    topics: int
    #: Milli per second.
    admitted: Pair
    wanted: Pair


class Gathered(NamedTuple):
    """Rows of some groups, in the order of the groups.

    Attributes:
        group: [rows] index into the requested list of groups.
        broker: [rows] number of the broker (`UsageMap.number_of`).
        admitted: [rows, 2] Milli per second; `wanted` likewise.
    """

    group: Ints
    broker: NDArray[np.int32]
    admitted: Ints
    wanted: Ints


class UsageMap:
    """Every row that any broker advertises at present."""

    def __init__(self, index: GroupIndex | None = None) -> None:
        self.index = GroupIndex() if index is None else index
        self._rows = RowStore()
        self._regions = GroupRegions()
        self._numbers: dict[str, int] = {}
        #: By broker number; "" if the broker was removed, until its number is reused.
        self._names: list[str] = []
        self._free_numbers: list[int] = []
        #: By broker number, and then by the number of the shard whose reports the rows came in.
        self._holdings: list[dict[int, BrokerRows]] = []
        #: By the same two: rows by the numbers of the sender's dictionary encoding.
        self._known: dict[tuple[int, int], KnownRows] = {}

    def apply(self, report: Report) -> Ints:
        """Apply a report; returns the slots of groups whose shares may change."""
        told = report.rows
        number = self.number_of(report.sender.broker)
        if not len(told) and not report.full:
            return _NO_PLACES
        holding = self._holding(number, report.shard)
        slots, rows = self._find(number, report)
        idle = told.is_idle
        is_all = not report.full or (report.span == ALL_ROWS and len(told) == len(holding))
        if is_all and not np.count_nonzero(idle) and _are_held(rows):
            holding.is_partial &= not report.full
            return self._rewrite(holding, rows, slots, Amounts.of(told))
        return self._merge(number, report, slots, rows, idle)

    def remove(self, broker: str) -> Ints:
        """Remove a broker and free its number; returns the slots of the groups it had rows in."""
        number = self._numbers.pop(broker, None)
        if number is None:
            return _NO_PLACES
        slots = [self._drop(number, shard) for shard in list(self._holdings[number])]
        self._names[number] = ""
        self._free_numbers.append(number)
        return np.concatenate([_NO_PLACES, *slots])

    def remove_shard(self, broker: str, shard: Shard) -> None:
        """Remove a broker's rows of one shard, because they are received no longer."""
        number = self._numbers.get(broker)
        if number is not None and shard.number in self._holdings[number]:
            self._drop(number, shard.number)

    def gather(self, slots: Ints) -> Gathered:
        """The rows of these groups."""
        self._make_room()
        rows, counts = self._regions.gather(slots)
        rates = self._rows.rates(rows)
        return Gathered(
            group=np.arange(len(slots)).repeat(counts),
            broker=self._rows.broker[rows],
            admitted=rates[:2].T,
            wanted=rates[2:].T,
        )

    def topics(self, slots: Ints) -> Ints:
        """[rows] the number of active topics of each row of `gather`, in its order."""
        self._make_room()
        rows, _ = self._regions.gather(slots)
        topics: Ints = self._rows.topics[rows].astype(np.int64)
        return topics

    def counts(self, slots: Ints) -> Ints:
        """[slots] number of rows of each of these groups."""
        self._make_room()
        return self._regions.counts(slots)

    def rows(self, key: GroupKey) -> Mapping[str, StoredRow]:
        """The rows of one group and kind, by broker."""
        slot = self.index.find(key)
        if slot is None:
            return {}
        self._make_room()
        rows, _ = self._regions.gather(np.array([slot]))
        return {self._names[self._rows.broker[row]]: self._row(row) for row in rows.tolist()}

    def rows_of(self, broker: str) -> Mapping[GroupKey, StoredRow]:
        """Everything that one broker advertises at present."""
        rows = [row for holding in self._holdings_of(broker) for row in holding.rows.tolist()]
        return {self.index.keys[self._rows.slot[row]]: self._row(row) for row in rows}

    def count_of(self, broker: str) -> int:
        """Number of rows of one broker."""
        return sum(map(len, self._holdings_of(broker)))

    def hash_of(self, broker: str, shard: Shard = WHOLE) -> int:
        """The hash of one broker's rows; computed from all of them unless `is_hashed`."""
        number = self._numbers.get(broker)
        if number is None:
            return 0
        holding = self._holding(number, shard)
        if holding.hash is None:
            rows, of = holding.span, self._rows
            keys = self.index.hashes.take(of.slot[rows])
            holding.hash = int(row_hashes(keys, of.topics[rows], of.rates(rows)).sum())
        return holding.hash & HASH_MASK

    def is_hashed(self, broker: str, shard: Shard = WHOLE) -> bool:
        """Whether `hash_of` is cheap: the hash is known, or there are few rows."""
        number = self._numbers.get(broker)
        if number is None:
            return True
        holding = self._holding(number, shard)
        return holding.hash is not None or len(holding) <= self.index.bounds.hashed_rows_max

    def brokers(self) -> set[str]:
        """Every broker that has a row."""
        return {
            name
            for name, number in self._numbers.items()
            if any(map(len, self._holdings[number].values()))
        }

    def number_of(self, broker: str) -> int:
        """The number of a broker in `Gathered`, valid until the broker is removed."""
        number = self._numbers.get(broker)
        if number is not None:
            return number
        if self._free_numbers:
            number = self._free_numbers.pop()
            self._names[number] = broker
        else:
            number = len(self._names)
            self._names.append(broker)
            self._holdings.append({})
        self._numbers[broker] = number
        return number

    def is_partial(self, broker: str) -> bool:
        """Whether some rows of a broker were not stored: too many, or too many without policies."""
        return any(holding.is_partial for holding in self._holdings_of(broker))

    @property
    def brokers_numbered(self) -> int:
        """One more than the greatest broker number."""
        return len(self._names)

    @property
    def live(self) -> int:
        """Number of rows."""
        return self._rows.live

    @property
    def nbytes(self) -> int:
        """Size in bytes of the arrays that hold the map."""
        held = sum(holding.nbytes for each in self._holdings for holding in each.values())
        return self._rows.nbytes + self._regions.nbytes + held

    def validate(self) -> None:
        """Check that every row belongs to one broker and one group's list; compares counts only.

        Raises:
            InvariantBroken: the counts differ, which is a bug.
        """
        held = sum(len(holding) for each in self._holdings for holding in each.values())
        if not held == self._rows.live == self._regions.live:
            raise InvariantBroken(
                f"the usage map has {self._rows.live} rows, {held} of brokers and "
                f"{self._regions.live} of groups"
            )

    def _holding(self, number: int, shard: Shard) -> BrokerRows:
        """One broker's rows of one shard."""
        holding = self._holdings[number].get(shard.number)
        if holding is None:
            holding = self._holdings[number][shard.number] = BrokerRows()
        return holding

    def _holdings_of(self, broker: str) -> Iterable[BrokerRows]:
        """One broker's rows of each shard."""
        number = self._numbers.get(broker)
        return () if number is None else self._holdings[number].values()

    def _drop(self, number: int, shard: int) -> Ints:
        """Remove the rows of one shard; returns the slots of their groups."""
        self._known.pop((number, shard), None)
        holding = self._holdings[number][shard]
        slots = holding.slots
        self._forget(holding, slots, holding.rows)
        del self._holdings[number][shard]
        return slots

    def _find(self, number: int, report: Report) -> tuple[Ints, Places]:
        """The slots of a report's rows, assigned if needed, and the broker's rows in them."""
        told, shard, names = report.rows, report.shard, report.rows.groups
        holding = self._holding(number, shard)
        # A full state replaces the held rows, so the limit counts only the rows kept of it.
        room = self.index.bounds.unknown_rows_max if report.full else None
        if not isinstance(names, NumberedNames):
            slots = self._look_up(number, shard, told, room)
            rows = holding.find(slots)
            return slots, rows if (rows == NO_ROW).any() else run_of(rows)
        known = self._known.get((number, shard.number))
        if known is None or not known.is_of(names):
            known = self._known[number, shard.number] = KnownRows(number, names.table)
        steady = known.steady(names, told.kinds, holding)
        if steady is not None:
            return steady
        slots, rows = known.find(names, told.kinds, self._rows, self.index)
        missing = (rows == NO_ROW).nonzero()[0]
        if len(missing):
            unknown = (slots == NO_SLOT).nonzero()[0]
            if len(unknown):
                slots[unknown] = self._look_up(number, shard, told.take(unknown), room)
            rows[missing] = holding.find(slots[missing])
            held = missing[rows[missing] != NO_ROW]
            if len(held):
                self._remember(known, told, held, slots[held], rows[held])
            if len(held) < len(missing):
                return slots, rows
        return slots, known.keep(names, told.kinds, slots, rows, holding.version)

    def _remember(
        self,
        known: KnownRows | None,
        told: UsageColumns,
        which: Ints,
        slots: Ints,
        rows: Ints,
    ) -> None:
        """Cache where some of a report's rows are stored, if they have dictionary numbers."""
        if known is not None and isinstance(told.groups, NumberedNames):
            names = told.groups.take(which)
            known.put(names, told.kinds[which], slots, rows, self.index)

    def _look_up(self, number: int, shard: Shard, told: UsageColumns, room: int | None) -> Ints:
        """[rows] slots, looked up by name; `NO_SLOT` also where a group is not of the shard."""
        slots = self.index.find_all(told.groups, told.kinds)
        missing = slots == NO_SLOT
        if np.count_nonzero(missing):
            missing &= ~told.is_idle
            if np.count_nonzero(missing):
                room = self._room(number) if room is None else room
                self.index.give(slots, missing, told.groups, told.kinds, room)
        if shard != WHOLE:
            # A broker must not have two rows of one group, one in each of two shards.
            slots[numbers_of(self.index.name_hashes[slots], shard.of) != shard.number] = NO_SLOT
        return slots

    def _room(self, number: int) -> int:
        """Number of further rows of groups without policies that a broker may have."""
        is_unknown, holdings = self.index.is_unknown, self._holdings[number].values()
        held = sum(int(np.count_nonzero(is_unknown[holding.slots])) for holding in holdings)
        return max(0, self.index.bounds.unknown_rows_max - held)

    def _row(self, row: int) -> StoredRow:
        rates = self._rows.rates(slice(row, row + 1))[:, 0].tolist()
        return StoredRow(int(self._rows.topics[row]), Pair(*rates[:2]), Pair(*rates[2:]))

    def _merge(self, number: int, report: Report, slots: Ints, places: Places, idle: Flags) -> Ints:
        """Apply a report that adds or removes rows; returns the slots whose shares may change."""
        told, holding, rows = (
            report.rows,
            self._holding(number, report.shard),
            indexes_of(places),
        )
        is_stored = rows != NO_ROW
        gone = rows[is_stored & idle]
        if report.full:
            missing = np.setdiff1d(self._rows_in(holding, report.span), rows, assume_unique=True)
            gone = np.union1d(gone, missing)
        kept = (is_stored & ~idle).nonzero()[0]
        gone_slots = self._rows.slot.take(gone).astype(np.int64)
        changed = [gone_slots]
        if len(kept):
            amounts = Amounts.of(told, kept)
            changed.append(self._rewrite(holding, rows.take(kept), slots.take(kept), amounts))
        self._forget(holding, gone_slots, gone)
        fresh = (~(is_stored | idle)).nonzero()[0]
        fits = self._kept(number, slots[fresh])
        holding.is_partial = bool(np.count_nonzero(~fits)) or (
            # A full state starts with the part of the smallest hashes.
            holding.is_partial and not (report.full and report.span.begin == 0)
        )
        fresh = fresh[fits]
        if not len(fresh):
            return np.concatenate(changed)
        new_slots = slots.take(fresh)
        new_rows = self._insert(number, holding, new_slots, Amounts.of(told, fresh))
        known = self._known.get((number, report.shard.number))
        self._remember(known, told, fresh, new_slots, new_rows)
        return np.concatenate([*changed, new_slots])

    def _rows_in(self, holding: BrokerRows, span: Span) -> Ints:
        """The rows of one broker whose groups and kinds have hashes in a span."""
        if span == ALL_ROWS:
            return holding.rows
        hashes = self.index.hashes[holding.slots]
        is_in = hashes >= np.uint64(span.begin)
        if span.end < ALL_ROWS.end:
            is_in &= hashes < np.uint64(span.end)
        return holding.rows[is_in]

    def _kept(self, number: int, slots: Ints) -> Flags:
        """[slots] whether the broker has room for a new row; the slots have no row yet."""
        kept: Flags = slots != NO_SLOT
        # `NO_SLOT` indexes the last slot here, and `kept` masks the result.
        unknown = kept & self.index.is_unknown.take(slots)
        if np.count_nonzero(unknown):
            kept &= ~unknown | (np.cumsum(unknown) <= self._room(number))
        held = sum(map(len, self._holdings[number].values()))
        room = self.index.bounds.rows_max - held
        if len(kept) > room:
            kept &= np.cumsum(kept) <= room
        return kept

    def _rewrite(self, holding: BrokerRows, rows: Places, slots: Ints, amounts: Amounts) -> Ints:
        """Overwrite held rows; returns the slots of groups whose shares may change."""
        if len(slots) == 0:
            return _NO_PLACES
        holding.hash = None
        moves, admits = self._rows.differs(rows, amounts)
        moves |= admits & ~self.index.ignores_admitted[slots]
        self._rows.write(rows, amounts)
        return slots.take(moves.nonzero()[0])

    def _insert(self, number: int, holding: BrokerRows, slots: Ints, amounts: Amounts) -> Ints:
        """Add rows of one broker, at most one for each slot; returns the rows."""
        rows = self._rows.new(number, slots)
        self._make_room()
        self._regions.add(slots, rows)
        holding.add(slots, rows)
        self._rows.write(rows, amounts)
        return rows

    def _forget(self, holding: BrokerRows, slots: Ints, rows: Ints) -> None:
        """Remove rows of one broker, at most one of each slot."""
        if len(rows) == 0:
            return
        self._regions.remove(slots, rows)
        holding.discard(slots)
        self._rows.free(rows)

    def _make_room(self) -> None:
        self._regions.make_room(len(self.index), len(self._rows.broker))


def _are_held(rows: Places) -> bool:
    """Whether no row is missing."""
    return isinstance(rows, slice) or not np.count_nonzero(rows == NO_ROW)
