"""Rows of the usage log as differences to earlier records of a segment (proto: ChainedRows).

Law: `ChainReader.read` gives back the rows that `Chain.write` was given, for the same records in the same order,
from any key record on. A record that continues one that was not read is refused (`Reason.UNLINKED`), so
damage costs the records up to the next key record, and no value is invented. A key record comes at least every
`KEY_EVERY` records; `rgd.wire.log_records` counts the entries between them too.

Both sides keep the last values of each (group, kind), and both expect the same next ones: totals go on by
what was counted, bytes by the mean size of the messages so far, all else stays. Only what differs is
written, and columns of zeros are not. A round of PIP-82's case takes a
tenth of what names and values would.

Differences wrap at 64 bits on both sides alike, so they are exact whatever the numbers are.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain, compress
from typing import Final, NamedTuple

import numpy as np

from rgd.core.exchange.columns import (
    KINDS,
    POLICIES,
    REFUSED_BY,
    Codes,
    Flags,
    Ints,
    ShareColumns,
    UsageColumns,
)
from rgd.core.shares.columns import NO_RATE
from rgd.wire import record_pb2
from rgd.wire.columns import (
    SCALE,
    Floats,
    checked,
    counts_of,
    rates_of,
    read_columns,
    write_columns,
)
from rgd.wire.errors import Malformed, Reason, WireError
from rgd.wire.keys import check_rows, read_keys, write_keys
from rgd.wire.parts import check_size
from rgd.wire.row_range import RowRange
from rgd.wire.varints import unzigzag, zigzag

_Record = record_pb2.RoundRecord

#: Records from one key record to the next at most.
KEY_EVERY: Final = 64
#: (group, kind) pairs that one chain tells apart; then a new one begins.
SLOTS_MAX: Final = 1 << 20

#: What is kept of each slot, by column.
_MESSAGES, _TOTAL, _WANTED_TOTAL, _SHARE, _QUOTA, _TOPICS, _POLICY, _WIDTH = (
    0,
    1,
    3,
    5,
    7,
    9,
    10,
    11,
)

_PAIRS: Final = (
    ("admitted", ""),
    ("rate", ""),
    ("unmet", ""),
    ("unmet_rate", ""),
    ("admitted", "_total"),
    ("wanted", "_total"),
    ("refused", ""),
    ("share", ""),
    ("quota", ""),
)
#: The columns of a record in the order in which they are computed with here.
_NAMES: Final = (
    *(f"{what}_{of}{suffix}" for what, suffix in _PAIRS for of in ("messages", "bytes")),
    *("topics", "policy", "sent"),
)
_LEVELS: Final = tuple(
    f"{level}_{of}"
    for level in ("broker", "group", "topic", "subscription", "backlog")
    for of in ("messages", "bytes")
)
#: The place of the group's own level in `REFUSED_BY`.
_OWN: Final = REFUSED_BY.index("resource_group")
#: No count or size is expected to be larger; whatever is, is a difference.
_EXPECTED_MAX: Final = float(1 << 62)


class Chain:
    """One side of a chain: slots, and the last values of each."""

    _slots: dict[tuple[str, int], int]
    _groups: list[str]
    kinds: Codes
    #: [slots, _WIDTH] the values in each slot's last record.
    values: Ints
    #: Slots of the last record's rows, and of what is written their groups.
    _last: Ints
    _groups_last: tuple[str, ...]

    def __init__(self) -> None:
        #: Of the next record; None: it must be a key record.
        self._link: int | None = None
        self._begin(0)

    def restart(self) -> None:
        """Let the next record be a key record."""
        self._link = None

    def write(
        self, rows: ShareColumns, proto: record_pb2.ChainedRows, *, name: int, period_ns: int
    ) -> None:
        """Write rows, which must be in order, into `proto`.

        Args:
            rows: what is logged.
            proto: what it is written into.
            name: of the chain, if it begins here.
            period_ns: what the rates cover.

        Raises:
            Oversize: more than `ROWS_MAX` rows; the next record is a key record.
            Malformed: a row comes twice, or a name or number cannot be one; likewise.
        """
        link, self._link = self._link, None
        if link is None or link >= KEY_EVERY or len(self._slots) + len(rows) > SLOTS_MAX:
            self._begin(name)
            link = 0
        _check(rows)
        proto.chain, proto.link, proto.rows = self._id, link, len(rows)
        slots = self._write_slots(rows.usage, proto)
        now, columns = _differences(rows, self.values[slots], period_ns)
        write_columns(proto, _NAMES, zigzag(columns.T), rows.sent)
        if len(rows.refused_by):
            proto.has_levels = True
            write_columns(proto, _LEVELS, zigzag(_of_levels(rows.refused_by, rows.refused)))
        self.values[slots] = now
        self._link = link + 1

    def read_slots(self, proto: record_pb2.ChainedRows) -> tuple[Ints, tuple[str, ...]]:
        """[rows] slots of the next record and their groups.

        Raises:
            WireError: with the reason; what follows is refused up to the next key record.
        """
        link, self._link = self._link, None
        if proto.link == 0:
            self._begin(proto.chain)
        elif link != proto.link or proto.chain != self._id:
            raise _unlinked()
        check_rows(proto.rows)
        slots = self._read_slots(proto)
        self._link = proto.link + 1
        return slots, self._groups_last

    def _begin(self, name: int) -> None:
        """Forget all slots and values."""
        self._id = name
        self._slots = {}
        self._groups = []
        self.kinds = np.zeros(0, np.uint8)
        self.values = np.zeros((0, _WIDTH), np.int64)
        self._last = np.zeros(0, np.int64)
        self._groups_last = ()

    def _write_slots(self, usage: UsageColumns, proto: record_pb2.ChainedRows) -> Ints:
        """[rows] slots; those that had none yet are given one."""
        groups, kinds = tuple(usage.groups), usage.kinds
        check_rows(len(groups))
        if groups == self._groups_last and np.array_equal(kinds, self.kinds[self._last]):
            proto.same_slots = True
            return self._last
        known = self._slots
        keys = list(zip(groups, kinds.tolist(), strict=True))
        found = list(map(known.get, keys))
        if None in found:
            fresh = np.array([at for at, slot in enumerate(found) if slot is None], np.int64)
            rows = usage.take(fresh)
            write_keys(rows, proto.fresh)
            self._add(rows.groups, rows.kinds)
            found = list(map(known.get, keys))
        if len(set(found)) != len(found):
            raise Malformed(Reason.DUPLICATE, "rows: a row comes twice")
        slots = np.array(found, np.int64)
        write_columns(proto, ("slots",), zigzag(np.diff(slots, prepend=-1) - 1))
        self._last, self._groups_last = slots, groups
        return slots

    def _read_slots(self, proto: record_pb2.ChainedRows) -> Ints:
        """[rows] slots."""
        if proto.HasField("fresh"):
            groups, kinds = read_keys(proto.fresh)
            check_size("slots of a chain", len(self._slots) + len(groups), SLOTS_MAX)
            self._add(groups, kinds)
        if proto.same_slots:
            slots = self._last
            if len(slots) != proto.rows:
                raise Malformed(Reason.BAD_COLUMNS, "slots: not as many as there are rows")
            return slots
        steps = unzigzag(read_columns([proto], ("slots",), [proto.rows]))[0]
        slots = np.cumsum(steps + 1) - 1
        if proto.rows and not 0 <= slots.min() <= slots.max() < len(self._slots):
            raise Malformed(Reason.BAD_NUMBER, "slots: one was never given")
        if len(np.unique(slots)) != len(slots):
            raise Malformed(Reason.DUPLICATE, "slots: one comes twice")
        self._last = slots
        self._groups_last = tuple(map(self._groups.__getitem__, slots.tolist()))
        return slots

    def _add(self, groups: Sequence[str], kinds: Codes) -> None:
        """Give slots to rows that have none."""
        begin = len(self._slots)
        self._slots.update(
            (key, slot) for slot, key in enumerate(zip(groups, kinds.tolist(), strict=True), begin)
        )
        if len(self._slots) != begin + len(groups):
            raise Malformed(Reason.DUPLICATE, "slots: a row has two")
        self._groups.extend(groups)
        self.kinds = np.concatenate([self.kinds, kinds])
        added = np.zeros((len(groups), _WIDTH), np.int64)
        self.values = np.concatenate([self.values, added])


class ChainReader:
    """Reads the rows of one log's records.

    Chains know nothing of one another, so records of several chains at equal places are computed together: alone, a
    record of one row costs a hundred times what the row does.
    """

    def __init__(self) -> None:
        self._chain = Chain()

    def read(self, protos: Sequence[_Record]) -> list[RowRange | WireError]:
        """The rows of the next records; for one that cannot be read the reason.

        What continues it is refused too, up to the next key record.
        """
        answers: dict[int, RowRange | WireError] = {}
        linked: list[_Linked] = []
        place = 0
        for at, proto in enumerate(protos):
            if proto.chained.link == 0:
                self._chain, place = Chain(), 0
            try:
                linked.append(
                    _Linked(at, proto, self._chain, place, *self._chain.read_slots(proto.chained))
                )
            except WireError as error:
                answers[at] = error
            place += 1
        answers.update(_read_together(linked))
        return [answers[at] for at in range(len(protos))]


class _Linked(NamedTuple):
    """A record whose rows' slots are known."""

    at: int
    proto: _Record
    chain: Chain
    #: Its index among the records of its chain that are read together.
    place: int
    slots: Ints
    groups: tuple[str, ...]


def _read_together(linked: Sequence[_Linked]) -> list[tuple[int, RowRange | WireError]]:
    """The rows of records, with the records' indexes."""
    try:
        return _rows_of(linked) if linked else []
    except WireError as error:
        if len(linked) == 1:
            linked[0].chain.restart()
            return [(linked[0].at, error)]
    # Which one cannot be read shows when they are read one by one.
    found: list[tuple[int, RowRange | WireError]] = []
    broken: set[Chain] = set()
    for one in linked:
        if one.chain in broken:
            found.append((one.at, _unlinked()))
            continue
        found += _read_together([one])
        if isinstance(found[-1][1], WireError):
            broken.add(one.chain)
    return found


def _rows_of(linked: Sequence[_Linked]) -> list[tuple[int, RowRange | WireError]]:
    """The rows of records, in their order."""
    protos = [one.proto.chained for one in linked]
    counts = [len(one.slots) for one in linked]
    written = read_columns(protos, _NAMES, counts)
    if written[-1].max(initial=0) > 1:
        raise Malformed(Reason.BAD_NUMBER, "sent: expected 0 or 1")
    period_ns = np.repeat([float(one.proto.period_ns) for one in linked], counts)
    places = np.repeat([one.place for one in linked], counts)
    chains = list(dict.fromkeys(one.chain for one in linked))
    begins = dict(zip(chains, accumulate([0, *(len(of.kinds) for of in chains)]), strict=False))
    slots = np.concatenate([one.slots for one in linked])
    slots = slots + np.repeat([begins[one.chain] for one in linked], counts)
    last = np.concatenate([of.values for of in chains])
    now, amounts = _follow(last, slots, places, unzigzag(written[:-1]), period_ns)
    groups = tuple(chain.from_iterable(one.groups for one in linked))
    kinds = np.concatenate([of.kinds for of in chains])[slots]
    rows = _shares(groups, kinds, now, amounts, written[-1] == 1)
    leveled = [proto.has_levels for proto in protos]
    if any(leveled):
        rows = _with_levels(rows, list(compress(protos, leveled)), np.repeat(leveled, counts))
    _check(rows)
    for of, begin in begins.items():
        of.values = last[begin : begin + len(of.kinds)]
    return [
        (one.at, RowRange(rows, end - count, end, has_levels))
        for one, count, end, has_levels in zip(
            linked, counts, accumulate(counts), leveled, strict=True
        )
    ]


def _shares(
    groups: tuple[str, ...], kinds: Codes, now: Ints, amounts: Ints, sent: Flags
) -> ShareColumns:
    """Rows of what `_follow` returns."""
    policies = now[:, _POLICY]
    if len(now) and not 0 <= policies.min() <= policies.max() < len(POLICIES):
        raise Malformed(Reason.BAD_NUMBER, "policy: one is not known")
    admitted, wanted, refused = amounts
    return ShareColumns(
        usage=UsageColumns(groups, kinds, now[:, _TOPICS], admitted, wanted),
        share=now[:, _SHARE : _SHARE + 2],
        quota=now[:, _QUOTA : _QUOTA + 2],
        policies=policies.astype(np.uint8),
        refused=refused,
        sent=sent,
        admitted_total=now[:, _TOTAL : _TOTAL + 2],
        wanted_total=now[:, _WANTED_TOTAL : _WANTED_TOTAL + 2],
    )


def _follow(
    last: Ints, slots: Ints, places: Ints, columns: Ints, period_ns: Floats
) -> tuple[Ints, Ints]:
    """[rows, _WIDTH] what is kept of the rows, and [3, rows, 2] what was admitted, wanted and refused.

    Args:
        last: [slots, _WIDTH] the values of each slot's last record; becomes those of its last row here.
        slots: [rows] of each row.
        places: [rows] in its chain: rows at one place have different slots, and continue lower places.
        columns: [columns, rows] what differs from what was expected.
        period_ns: [rows] what the rates cover.
    """
    now = np.empty((len(slots), _WIDTH), np.int64)
    amounts = np.empty((3, len(slots), 2), np.int64)
    order = np.argsort(places, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(places[order])) + 1):
        of = slots[rows]
        now[rows], amounts[:, rows] = _next(last[of], columns[:, rows], period_ns[rows])
        last[of] = now[rows]
    return now, amounts


def _next(before: Ints, columns: Ints, period_ns: Floats) -> tuple[Ints, Ints]:
    """All that is kept of the slots now, and [3, rows, 2] what was admitted, wanted and refused."""
    now = before.copy()
    messages = before[:, _MESSAGES] + columns[0]
    counts = np.stack([messages, columns[1] + _expected_bytes(messages, before)])
    now[:, _MESSAGES] = messages
    admitted = columns[2:4] + _rates(counts, period_ns)
    wanted = admitted + columns[6:8]
    unmet = columns[4:6]
    if unmet.any():
        wanted = np.where(unmet != 0, _rates(counts + unmet, period_ns), wanted)
    counted = _near(admitted, period_ns), _near(wanted, period_ns)
    now[:, _TOTAL : _TOTAL + 2] += (columns[8:10] + counted[0]).T
    now[:, _WANTED_TOTAL : _WANTED_TOTAL + 2] += (columns[10:12] + counted[1]).T
    now[:, _SHARE:] += columns[14:].T
    refused = columns[12:14] + (counted[1] - counted[0])
    return now, np.stack([admitted, wanted, refused]).swapaxes(1, 2)


def _unlinked() -> Malformed:
    return Malformed(Reason.UNLINKED, "record: it continues one that was not read")


def _differences(rows: ShareColumns, before: Ints, period_ns: int) -> tuple[Ints, Ints]:
    """All that is kept of the rows' slots now, and [columns, rows] what differs from what was expected."""
    usage = rows.usage
    admitted, wanted = usage.admitted.T, usage.wanted.T
    counts = counts_of(admitted, period_ns)
    offered = counts_of(wanted, period_ns)
    is_counted = (counts > 0) | (admitted == 0)
    is_unmet = is_counted & (offered > 0) & (wanted != admitted)
    counted = _near(admitted, period_ns), _near(wanted, period_ns)
    now = np.concatenate(
        [
            counts[:1].T,
            rows.admitted_total,
            rows.wanted_total,
            rows.share,
            rows.quota,
            usage.topics[:, None],
            rows.policies[:, None].astype(np.int64),
        ],
        axis=1,
    )
    change = (now - before).T
    columns = np.concatenate(
        [
            change[:1],
            counts[1:] - _expected_bytes(counts[0], before),
            np.where(is_counted, 0, admitted),
            np.where(is_unmet, offered - counts, 0),
            np.where(is_unmet, 0, wanted - admitted),
            change[_TOTAL:_WANTED_TOTAL] - counted[0],
            change[_WANTED_TOTAL:_SHARE] - counted[1],
            rows.refused.T - (counted[1] - counted[0]),
            change[_SHARE:],
        ]
    )
    return now, columns


def _expected_bytes(messages: Ints, before: Ints) -> Ints:
    """[rows] bytes of so many messages, of the mean size of all that the slot had before."""
    totals = before[:, _TOTAL : _TOTAL + 2].astype(np.float64)
    mean = totals[:, 1] / np.maximum(totals[:, 0], 1.0)
    return _whole(messages * mean)


def _near(rates: Ints, period_ns: Floats | int) -> Ints:
    """[2, rows] about how many units rates are in the period."""
    return _whole(rates * (period_ns / SCALE))


def _rates(counts: Ints, period_ns: Floats) -> Ints:
    """[2, rows] the rates of counts, which must not be negative."""
    return rates_of(checked(counts, counts.shape, "counts").view(np.uint64), period_ns)


def _whole(numbers: Floats) -> Ints:
    # `np.clip` takes five times as long for few rows.
    bounded = np.minimum(np.maximum(numbers, -_EXPECTED_MAX), _EXPECTED_MAX)
    return np.rint(bounded).astype(np.int64)


def _of_levels(refused_by: Ints, refused: Ints) -> Ints:
    """[rows, LEVELS] refused by level; of the group's own what the others leave of all."""
    written = refused_by.copy()
    written[:, _OWN] += refused_by.sum(axis=1) - refused_by[:, _OWN] - refused
    return written.reshape(len(refused), len(_LEVELS))


def _with_levels(
    rows: ShareColumns, protos: Sequence[record_pb2.ChainedRows], leveled: Flags
) -> ShareColumns:
    """The rows with what each level refused, which the `leveled` ones have."""
    columns = unzigzag(read_columns(protos, _LEVELS, [proto.rows for proto in protos]))
    refused_by = np.zeros((len(rows), len(REFUSED_BY), 2), np.int64)
    refused_by[leveled] = columns.T.reshape(-1, len(REFUSED_BY), 2)
    others = refused_by.sum(axis=1) - refused_by[:, _OWN]
    refused_by[leveled, _OWN] += (rows.refused - others)[leveled]
    return replace(rows, refused_by=refused_by)


def _check(rows: ShareColumns) -> None:
    """Refuse columns of the wrong lengths, and numbers out of their range."""
    usage, count = rows.usage, len(rows)
    for what, numbers in (
        ("admitted", usage.admitted),
        ("wanted", usage.wanted),
        ("admitted total", rows.admitted_total),
        ("wanted total", rows.wanted_total),
        ("refused", rows.refused),
        ("share", rows.share - NO_RATE),
        ("quota", rows.quota - NO_RATE),
    ):
        checked(numbers, (count, 2), what)
    checked(usage.topics, (count,), "topics")
    if usage.kinds.shape != (count,) or usage.kinds.max(initial=0) >= len(KINDS):
        raise Malformed(Reason.BAD_COLUMNS, f"kinds: expected {count} places below {len(KINDS)}")
    if rows.policies.shape != (count,) or rows.policies.max(initial=0) >= len(POLICIES):
        raise Malformed(Reason.BAD_NUMBER, f"policy: expected {count} places below {len(POLICIES)}")
    if rows.sent.shape != (count,):
        raise Malformed(Reason.BAD_COLUMNS, f"sent: {rows.sent.shape} values for {count} rows")
    if len(rows.refused_by):
        checked(rows.refused_by, (count, len(REFUSED_BY), 2), "refused by level")
