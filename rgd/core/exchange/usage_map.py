"""The usage map of PIP-82: group -> broker -> usage, as received from the exchange.

Laws: it holds exactly what each broker advertised last, including this one (as read back from the
topic), so all daemons that received the same messages hold the same. A row of zeros removes the
broker from the group, as in PIP-82.

With shards, a broker's rows of each shard come in reports of their own and are hashed separately
(`rgd.core.exchange.shards`); a row belongs to the shard of its group.

Each broker's rows are arrays sorted by slot (`broker_rows`), and a bit for each slot and broker says whose
arrays have a row of a group. A name is looked up once (`known_slots`). A report of thousands of rows
therefore takes a few passes of numpy, and so does gathering the rows of the groups that it changed.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from rgd.core.errors import InvariantBroken
from rgd.core.exchange.broker_rows import Amounts, BrokerRows, RowBrokers, amounts_of
from rgd.core.exchange.columns import Flags, Ints, UsageColumns
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex
from rgd.core.exchange.known_slots import KnownSlots
from rgd.core.exchange.messages import ALL_ROWS, Report
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.rows_hash import HASH_MASK, row_hashes
from rgd.core.exchange.shards import WHOLE, Shard
from rgd.core.policies.model import GroupKey
from rgd.core.units import Pair

_NO_PLACES: Final[Ints] = np.zeros(0, np.int64)


class Gathered(NamedTuple):
    """Rows of some groups, in the order of the groups.

    Attributes:
        group: [rows] index into the requested list of groups.
        broker: [rows] number of the broker (`UsageMap.number_of`).
        topics: [rows] number of active topics.
        admitted: [rows, 2] Milli per second; `wanted` likewise.
    """

    group: Ints
    broker: Ints
    topics: Ints
    admitted: Ints
    wanted: Ints


class UsageMap:
    """Every row that any broker advertises at present."""

    def __init__(self, index: GroupIndex | None = None) -> None:
        self.index = GroupIndex() if index is None else index
        self._numbers: dict[str, int] = {}
        #: By broker number; "" if the broker was removed, until its number is reused.
        self._names: list[str] = []
        self._free_numbers: list[int] = []
        #: By broker number.
        self._held: list[BrokerRows] = []
        self._brokers = RowBrokers()

    def apply(self, report: Report) -> Ints:
        """Apply a report; returns the slots of groups whose shares may change."""
        told, shard = report.rows, report.shard.number
        number = self.number_of(report.sender.broker)
        if not len(told) and not report.full:
            return _NO_PLACES
        held, slots = self._held[number], self._slots_of(number, report)
        at, is_held = held.find(slots)
        idle, amounts = told.is_idle, amounts_of(told)
        again = (is_held & ~idle).nonzero()[0]
        changed = self._rewrite(held, at[again], amounts.take(again, 1))
        gone = self._covered(held.slots, report) if report.full else np.zeros(len(held), np.bool_)
        gone[at[is_held]] = idle[is_held]
        gone_slots = self._drop(number, gone)
        fresh = (~(is_held | idle)).nonzero()[0]
        fits = self._fits(number, slots[fresh])
        if report.full and report.span.begin == 0:
            # A full state starts with the part of the smallest hashes.
            held.partial.discard(shard)
        if np.count_nonzero(fits) < len(fits):
            held.partial.add(shard)
            fresh = fresh[fits]
        if len(fresh):
            held.add(slots[fresh], amounts.take(fresh, 1))
            self._make_room()
            self._brokers.add(slots[fresh], number)
        return np.concatenate((changed, gone_slots, slots[fresh]))

    def remove(self, broker: str) -> None:
        """Remove a broker and free its number."""
        number = self._numbers.pop(broker, None)
        if number is not None:
            self._drop(number, np.ones(len(self._held[number]), np.bool_))
            self._held[number] = BrokerRows()
            self._names[number] = ""
            self._free_numbers.append(number)

    def remove_shard(self, broker: str, shard: Shard) -> None:
        """Remove a broker's rows of one shard, because they are received no longer."""
        number = self._numbers.get(broker)
        if number is not None:
            held = self._held[number]
            self._drop(number, self.index.are_of(held.slots, shard))
            held.known.pop(shard.number, None)
            held.partial.discard(shard.number)

    def gather(self, slots: Ints) -> Gathered:
        """The rows of these groups; a slot id below 0 has none."""
        self._make_room()
        broker, group = self._brokers.of(slots)
        amounts, asked, begin = np.empty((5, len(group)), np.int64), slots.take(group), 0
        counts = np.bincount(broker, minlength=1).tolist()
        for held, count in zip(self._held, counts, strict=False):
            if count:
                end = begin + count
                places = held.slots.searchsorted(asked[begin:end])
                amounts[:, begin:end] = held.amounts.take(places, 1)
                begin = end
        order = group.argsort(kind="stable")
        amounts = amounts.take(order, 1)
        return Gathered(
            group=group.take(order),
            broker=broker.take(order),
            topics=amounts[0],
            admitted=amounts[1:3].T,
            wanted=amounts[3:].T,
        )

    def counts(self, slots: Ints) -> Ints:
        """[slots] number of rows of each of these groups."""
        self._make_room()
        return self._brokers.counts(slots)

    def rows(self, key: GroupKey) -> Mapping[str, UsageRow]:
        """The rows of one group and kind, by broker."""
        slot = self.index.find(key)
        if slot is None:
            return {}
        of = self.gather(np.array([slot]))
        amounts = np.column_stack((of.topics, of.admitted, of.wanted))
        names = (self._names[number] for number in of.broker.tolist())
        rows = (_row(key, of_broker) for of_broker in amounts.tolist())
        return dict(zip(names, rows, strict=True))

    def rows_of(self, broker: str) -> Mapping[GroupKey, UsageRow]:
        """Everything that one broker advertises at present."""
        held = self._rows_of(broker)
        keys = [self.index.keys[slot] for slot in held.slots.tolist()]
        return dict(zip(keys, map(_row, keys, held.amounts.T.tolist()), strict=True))

    def count_of(self, broker: str) -> int:
        """Number of rows of one broker."""
        return len(self._rows_of(broker))

    def hash_of(self, broker: str, shard: Shard = WHOLE) -> int:
        """The hash of one broker's rows of a shard."""
        held = self._rows_of(broker)
        is_of = self.index.are_of(held.slots, shard)
        keys, amounts = self.index.hashes[held.slots[is_of]], held.amounts.compress(is_of, 1)
        return int(row_hashes(keys, amounts[0], amounts[1:]).sum()) & HASH_MASK

    def brokers(self) -> set[str]:
        """Every broker that has a row."""
        return {name for name, number in self._numbers.items() if len(self._held[number])}

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
            self._held.append(BrokerRows())
        self._numbers[broker] = number
        return number

    def is_partial(self, broker: str, shard: Shard = WHOLE) -> bool:
        """Whether some rows of a broker's shard were not stored: too many, or too many without policies."""
        return shard.number in self._rows_of(broker).partial

    @property
    def brokers_numbered(self) -> int:
        """One more than the greatest broker number."""
        return len(self._names)

    @property
    def live(self) -> int:
        """Number of rows."""
        return sum(map(len, self._held))

    @property
    def nbytes(self) -> int:
        """Size in bytes of the arrays that hold the map."""
        held = sum(one.slots.nbytes + one.amounts.nbytes for one in self._held)
        return self._brokers.nbytes + held

    def validate(self) -> None:
        """Check that brokers have the rows that groups are said to have; compares counts only.

        Raises:
            InvariantBroken: the counts differ, which is a bug.
        """
        of_groups = self._brokers.total()
        if self.live != of_groups:
            raise InvariantBroken(f"the usage map has {self.live} rows, and {of_groups} of groups")

    def _rows_of(self, broker: str) -> BrokerRows:
        """One broker's rows; none where it is unknown."""
        number = self._numbers.get(broker)
        return BrokerRows() if number is None else self._held[number]

    def _covered(self, slots: Ints, report: Report) -> Flags:
        """[slots] whether a full state would have a row of these groups."""
        is_of, span = self.index.are_of(slots, report.shard), report.span
        if span != ALL_ROWS:
            hashes = self.index.hashes[slots]
            is_of &= hashes >= np.uint64(span.begin)
            if span.end < ALL_ROWS.end:
                is_of &= hashes < np.uint64(span.end)
        return is_of

    def _slots_of(self, number: int, report: Report) -> Ints:
        """[rows] the slots of a report's rows, assigned if needed."""
        told, names, held = report.rows, report.rows.groups, self._held[number]
        # A full state replaces the held rows, so the limit counts only the rows kept of it.
        room = self.index.bounds.unknown_rows_max if report.full else None
        if not isinstance(names, NumberedNames):
            return self._look_up(number, report.shard, told, room)
        known = held.known.get(report.shard.number)
        if known is None or known.table is not names.table:
            known = held.known[report.shard.number] = KnownSlots(names.table)
        slots = known.find(names, told.kinds, self.index)
        unknown = (slots == NO_SLOT).nonzero()[0]
        if len(unknown):
            slots[unknown] = self._look_up(number, report.shard, told.take(unknown), room)
            known.put(names.take(unknown), told.kinds[unknown], slots[unknown], self.index)
        return slots

    def _look_up(self, number: int, shard: Shard, told: UsageColumns, room: int | None) -> Ints:
        """[rows] slots, looked up by name; `NO_SLOT` also where a group is not of the shard."""
        room = self._room(number) if room is None else room
        slots = self.index.slots(told.groups, told.kinds, skip=told.is_idle, room=room)
        # A broker must not have two rows of one group, one in each of two shards.
        slots[~self.index.are_of(slots, shard)] = NO_SLOT
        return slots

    def _room(self, number: int) -> int:
        """Number of further rows of groups without policies that a broker may have."""
        held = np.count_nonzero(self.index.is_unknown[self._held[number].slots])
        return max(0, self.index.bounds.unknown_rows_max - int(held))

    def _fits(self, number: int, slots: Ints) -> Flags:
        """[slots] whether the broker has room for a new row; the slots have no row yet."""
        kept: Flags = slots != NO_SLOT
        # `NO_SLOT` indexes the last slot here, and `kept` masks the result.
        unknown = kept & self.index.is_unknown.take(slots)
        if np.count_nonzero(unknown):
            kept &= ~unknown | (np.cumsum(unknown) <= self._room(number))
        room = self.index.bounds.rows_max - len(self._held[number])
        if len(kept) > room:
            kept &= np.cumsum(kept) <= room
        return kept

    def _rewrite(self, held: BrokerRows, places: Ints, amounts: Amounts) -> Ints:
        """Overwrite rows; returns the slots of groups whose shares may change."""
        slots = held.slots.take(places)
        differs = held.amounts.take(places, 1) != amounts
        moves = (differs[1] | differs[2]) & ~self.index.ignores_admitted[slots]
        moves |= differs[3] | differs[4]
        held.amounts[:, places] = amounts
        return slots.compress(moves)

    def _drop(self, number: int, gone: Flags) -> Ints:
        """Remove rows of one broker; returns their slots."""
        held = self._held[number]
        slots = held.slots[gone]
        if len(slots):
            held.keep(~gone)
            self._brokers.remove(slots, number)
        return slots

    def _make_room(self) -> None:
        # The last slot stays empty: slot ids below 0 find it.
        self._brokers.make_room(len(self._names), len(self.index) + 1)


def _row(key: GroupKey, amounts: list[int]) -> UsageRow:
    topics, *rates = amounts
    return UsageRow(*key, topics, Pair(*rates[:2]), Pair(*rates[2:]))
