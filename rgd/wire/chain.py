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

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Final

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
    side_by_side,
    write_columns,
)
from rgd.wire.errors import Malformed, Oversize, Reason, WireError
from rgd.wire.keys import check_rows, read_keys, write_keys
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
    _kinds: Codes
    #: [slots, _WIDTH] the values in each slot's last record.
    _values: Ints
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
        now, columns = _differences(rows, self._values[slots], period_ns)
        write_columns(proto, _NAMES, zigzag(columns.T), rows.sent)
        if len(rows.refused_by):
            proto.has_levels = True
            write_columns(proto, _LEVELS, zigzag(_of_levels(rows.refused_by, rows.refused)))
        self._values[slots] = now
        self._link = link + 1

    def read_slots(self, proto: record_pb2.ChainedRows) -> Ints:
        """[rows] slots of the next record, which `keep` completes.

        Raises:
            WireError: with the reason; what follows is refused up to the next key record.
        """
        link, self._link = self._link, None
        if proto.link == 0:
            self._begin(proto.chain)
        elif link != proto.link or proto.chain != self._id:
            raise Malformed(Reason.UNLINKED, "record: it continues one that was not read")
        check_rows(proto.rows)
        return self._read_slots(proto)

    def kept(self, slots: Ints) -> tuple[tuple[str, ...], Codes, Ints]:
        """Groups, kinds and last values of the slots that `read_slots` returned."""
        return self._groups_last, self._kinds[slots], self._values[slots]

    def keep(self, slots: Ints, now: Ints, link: int) -> None:
        """Keep the values of the record that was read."""
        self._values[slots] = now
        self._link = link + 1

    def _begin(self, name: int) -> None:
        """Forget all slots and values."""
        self._id = name
        self._slots = {}
        self._groups = []
        self._kinds = np.zeros(0, np.uint8)
        self._values = np.zeros((0, _WIDTH), np.int64)
        self._last = np.zeros(0, np.int64)
        self._groups_last = ()

    def _write_slots(self, usage: UsageColumns, proto: record_pb2.ChainedRows) -> Ints:
        """[rows] slots; those that had none yet are given one."""
        groups, kinds = tuple(usage.groups), usage.kinds
        check_rows(len(groups))
        if groups == self._groups_last and np.array_equal(kinds, self._kinds[self._last]):
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
            if len(self._slots) + len(groups) > SLOTS_MAX:
                raise Oversize("slots of a chain", len(self._slots) + len(groups), SLOTS_MAX)
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
        self._kinds = np.concatenate([self._kinds, kinds])
        added = np.zeros((len(groups), _WIDTH), np.int64)
        self._values = np.concatenate([self._values, added])


class ChainReader:
    """Reads the rows of one log's records.

    Chains know nothing of one another, so records of several chains at equal places are computed together: alone, a
    record of one row costs a hundred times what the row does.
    """

    def __init__(self) -> None:
        self._chain = Chain()

    def read(self, protos: Sequence[_Record]) -> list[ShareColumns | WireError]:
        """The rows of the next records; for one that cannot be read the reason.

        What continues it is refused too, up to the next key record.
        """
        batches: dict[tuple[int, bool], dict[int, Chain]] = defaultdict(dict)
        place = 0
        for at, proto in enumerate(protos):
            if proto.chained.link == 0:
                self._chain, place = Chain(), 0
            batches[place, proto.chained.has_levels][at] = self._chain
            place += 1
        answers: dict[int, ShareColumns | WireError] = {}
        for _, chains in sorted(batches.items()):
            answers.update(_read_together(protos, chains))
        return [answers[at] for at in range(len(protos))]


def _read_together(
    protos: Sequence[_Record], chains: Mapping[int, Chain]
) -> Iterator[tuple[int, ShareColumns | WireError]]:
    """The rows of records of different chains, with the places of these."""
    linked = []
    for at, of in chains.items():
        try:
            linked.append((at, protos[at], of, of.read_slots(protos[at].chained)))
        except WireError as error:
            yield at, error
    batches = [linked] if linked else []
    while batches:
        records = batches.pop()
        try:
            yield from _rows_of(records)
        except WireError as error:
            if len(records) == 1:
                yield records[0][0], error
            else:
                # Which one cannot be read shows when they are read one by one.
                batches = [[one] for one in records]


def _rows_of(
    records: Sequence[tuple[int, _Record, Chain, Ints]],
) -> list[tuple[int, ShareColumns]]:
    """The rows of records of different chains with their slots, of which all have levels or none."""
    protos = [proto.chained for _, proto, _, _ in records]
    counts = [len(slots) for *_, slots in records]
    written = read_columns(protos, _NAMES, counts)
    columns, sent = unzigzag(written[:-1]), written[-1]
    if sent.max(initial=0) > 1:
        raise Malformed(Reason.BAD_NUMBER, "sent: expected 0 or 1")
    period_ns = np.repeat([float(proto.period_ns) for _, proto, _, _ in records], counts)
    groups, *kept = zip(*(of.kept(slots) for *_, of, slots in records), strict=True)
    kinds, before = map(np.concatenate, kept)
    names = tuple(chain.from_iterable(groups))
    usage, now, refused = _usage(names, kinds, before, columns, period_ns)
    policies = now[:, _POLICY]
    if len(now) and not 0 <= policies.min() <= policies.max() < len(POLICIES):
        raise Malformed(Reason.BAD_NUMBER, "policy: one is not known")
    rows = ShareColumns(
        usage=usage,
        share=now[:, _SHARE : _SHARE + 2],
        quota=now[:, _QUOTA : _QUOTA + 2],
        policies=policies.astype(np.uint8),
        refused=refused,
        sent=sent == 1,
        admitted_total=now[:, _TOTAL : _TOTAL + 2],
        wanted_total=now[:, _WANTED_TOTAL : _WANTED_TOTAL + 2],
    )
    if protos[0].has_levels:
        rows = _with_levels(rows, unzigzag(read_columns(protos, _LEVELS, counts)))
    _check(rows)
    found = []
    for (at, proto, of, slots), end in zip(records, accumulate(counts), strict=True):
        begin = end - len(slots)
        of.keep(slots, now[begin:end], proto.chained.link)
        found.append((at, rows.between(begin, end)))
    return found


def _usage(
    groups: tuple[str, ...], kinds: Codes, before: Ints, columns: Ints, period_ns: Floats
) -> tuple[UsageColumns, Ints, Ints]:
    """The rows' usage, all that is kept of their slots, and what was refused."""
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
    usage = UsageColumns(
        groups=groups,
        kinds=kinds,
        topics=now[:, _TOPICS],
        admitted=side_by_side(admitted),
        wanted=side_by_side(wanted),
    )
    return usage, now, side_by_side(columns[12:14] + (counted[1] - counted[0]))


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


def _with_levels(rows: ShareColumns, columns: Ints) -> ShareColumns:
    refused_by = columns.T.reshape(len(rows), len(REFUSED_BY), 2).copy()
    others = refused_by.sum(axis=1) - refused_by[:, _OWN]
    refused_by[:, _OWN] += rows.refused - others
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
    _check_flags(rows.sent, count)
    if len(rows.refused_by):
        checked(rows.refused_by, (count, len(REFUSED_BY), 2), "refused by level")


def _check_flags(flags: Flags, count: int) -> None:
    if flags.shape != (count,):
        raise Malformed(Reason.BAD_COLUMNS, f"sent: {flags.shape} values for {count} rows")
