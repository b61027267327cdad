"""A round in the usage log without its rows, and its JSON form (`rgd log cat`).

Law: an entry is rgd's record if its metadata has the property `rgd`, the version of the
record's schema (proto/rgd/v1/record.proto). Other payloads are not read.

A round that is too large for one entry is written as several (`rgd.wire.record_parts`), each of them a
record of some of its rows and peers. `rgd.wire.log_records` writes and reads records with their rows;
the log adapter stores and indexes entries.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow
from rgd.core.policies.model import Rate
from rgd.core.units import MILLI, NS_PER_MS, Milli, Pair, to_units
from rgd.wire import record_pb2
from rgd.wire.checks import check_broker, check_count, check_counts, check_distinct, check_weight
from rgd.wire.errors import Malformed, Reason, UnknownVersion, WireError
from rgd.wire.frame import Entry
from rgd.wire.keys import is_in_order
from rgd.wire.parts import check_size
from rgd.wire.row_range import RowRange

#: The property of an entry's metadata with the version of a record in the payload.
RECORD_PROPERTY: Final = "rgd"
RECORD_VERSION: Final = 2
#: Ready for `Entry.properties`.
RECORD_PROPERTIES: Final = ((RECORD_PROPERTY, str(RECORD_VERSION)),)

#: Most peers that one record may name.
PEERS_MAX: Final = 10_000
#: Senders whose names are not checked again.
SENDERS_KEPT_MAX: Final = 1024
#: Most parts of one round: far more than any round has rows for.
PARTS_MAX: Final = 1_000_000

#: Plain values, as `json.dumps` takes them.
Json = bool | int | float | str | None | list["Json"] | dict[str, "Json"]


class LoggedRound(NamedTuple):
    """A record as it is read: a `RoundRecord` whose rows are among those of others."""

    sender: Sender
    rows: RowRange
    sequence: int
    period_ns: int
    ended_ns: int
    lost: int
    ungoverned: int
    unknown_granted: int
    unknown_refused: int
    policies_hash: int
    isolated: bool
    weight: int
    last: bool
    part: int
    parts: int
    peers: tuple[tuple[str, int], ...]
    peer_incarnations: tuple[int, ...]

    def alone(self) -> RoundRecord:
        """The record with rows of its own."""
        return RoundRecord(**{**self._asdict(), "rows": self.rows.columns})


_READ: Final = ("broker", "incarnation", *LoggedRound._fields[2:])
_fields_of = attrgetter(*_READ)
#: Those that are counts.
_COUNTS: Final = LoggedRound._fields[2:10]


def in_order(record: RoundRecord) -> RoundRecord:
    """The record with its rows in the order in which they are stored."""
    if is_in_order(record.rows.usage):
        return record
    return replace(record, rows=record.rows.in_order())


def write_header(record: RoundRecord) -> record_pb2.RoundRecord:
    """A record without its rows.

    Raises:
        Oversize: too many peers.
        Malformed: a peer comes twice, or a name or number cannot be one.
    """
    _check_part(record.part, record.parts)
    try:
        proto = record_pb2.RoundRecord(
            broker=check_broker(record.sender.broker),
            incarnation=record.sender.incarnation,
            sequence=check_count(record.sequence, "sequence"),
            period_ns=check_count(record.period_ns, "period"),
            isolated=record.isolated,
            peers=[
                record_pb2.Peer(broker=broker, sequence=sequence)
                for broker, sequence in _checked_peers(record.peers)
            ],
            weight=check_weight(record.weight),
            ended_ns=check_count(record.ended_ns, "end"),
            last=record.last,
            peer_incarnations=_checked_incarnations(record.peer_incarnations, len(record.peers)),
            lost=check_count(record.lost, "lost"),
            ungoverned=check_count(record.ungoverned, "ungoverned"),
            unknown_granted=check_count(record.unknown_granted, "unknown_granted"),
            unknown_refused=check_count(record.unknown_refused, "unknown_refused"),
            policies_hash=check_count(record.policies_hash, "policies_hash"),
        )
        if record.parts > 1:
            proto.part, proto.parts = record.part, record.parts
    except ValueError as exc:
        raise Malformed(Reason.BAD_NUMBER, f"record: {exc}") from exc
    return proto


def version_of(entry: Entry) -> int | None:
    """The version of the record that an entry holds; None: it is another producer's entry.

    Raises:
        UnknownVersion: written by a later rgd.
    """
    if entry.properties == RECORD_PROPERTIES:
        return RECORD_VERSION
    version = entry.property_of(RECORD_PROPERTY)
    if version not in (None, str(RECORD_VERSION)):
        raise UnknownVersion("record", version)
    return None if version is None else int(version)


def rounds_of(
    protos: Sequence[record_pb2.RoundRecord], rows: Sequence[RowRange | WireError]
) -> list[LoggedRound | WireError]:
    """Records with their rows, which are read apart; for one that cannot be read the reason."""
    read = [of for of in rows if not isinstance(of, WireError)]
    try:
        if len(read) == len(protos):
            return [*_rounds(protos, read)]
    except WireError as error:
        if len(protos) == 1:
            return [error]
    return [
        of if isinstance(of, WireError) else rounds_of([proto], [of])[0]
        for proto, of in zip(protos, rows, strict=True)
    ]


def _rounds(
    protos: Sequence[record_pb2.RoundRecord], rows: Sequence[RowRange]
) -> Iterator[LoggedRound]:
    """Records with their rows, by columns: an object for each of the fields takes five times as long."""
    if not protos:
        return iter(())
    columns = zip(*map(_fields_of, protos), strict=True)
    fields: dict[str, Sequence[Any]] = dict(zip(_READ, columns, strict=True))
    for name in _COUNTS:
        check_counts(fields[name], name)
    fields["weight"] = [check_weight(weight or MILLI) for weight in fields["weight"]]
    for name in ("part", "parts"):
        fields[name] = [number or 1 for number in fields[name]]
    for part, parts in set(zip(fields["part"], fields["parts"], strict=True)):
        _check_part(part, parts)
    peers = [_read_peers(named) if named else () for named in fields["peers"]]
    incarnations = [tuple(low) for low in fields["peer_incarnations"]]
    for named, low in zip(peers, incarnations, strict=True):
        if named or low:
            _checked_incarnations(low, len(named))
    senders = map(_sender, fields.pop("broker"), fields.pop("incarnation"))
    fields |= {"peers": peers, "peer_incarnations": incarnations}
    return map(LoggedRound._make, zip(senders, rows, *fields.values(), strict=True))


def _read_peers(named: Sequence[record_pb2.Peer]) -> tuple[tuple[str, int], ...]:
    return _checked_peers([(peer.broker, peer.sequence) for peer in named[: PEERS_MAX + 1]])


@lru_cache(maxsize=SENDERS_KEPT_MAX)
def _sender(broker: str, incarnation: int) -> Sender:
    return Sender(check_broker(broker), incarnation)


def record_to_dict(record: RoundRecord) -> dict[str, Json]:
    """A record in plain values: rates in units per second, null for unlimited."""
    return {
        "broker": record.sender.broker,
        "incarnation": record.sender.incarnation,
        "sequence": record.sequence,
        "period_ms": record.period_ns / NS_PER_MS,
        "part": record.part,
        "parts": record.parts,
        "lost": record.lost,
        "isolated": record.isolated,
        "weight": to_units(record.weight),
        "last": record.last,
        "ungoverned": record.ungoverned,
        "unknown_granted": record.unknown_granted,
        "unknown_refused": record.unknown_refused,
        "policies_hash": f"{record.policies_hash:016x}" if record.policies_hash else None,
        "peers": dict(record.peers),
        "rows": [_row_to_dict(row) for row in record.rows],
    }


def _row_to_dict(row: ShareRow) -> dict[str, Json]:
    usage = row.usage
    return {
        "group": usage.group,
        "kind": usage.kind.value,
        "topics": usage.topics,
        "admitted": _rates(usage.admitted),
        "wanted": _rates(usage.wanted),
        "admitted_total": _counts(row.admitted_total),
        "wanted_total": _counts(row.wanted_total),
        "refused": _counts(row.refused),
        "refused_by": {level: _counts(pair) for level, pair in row.refused_by},
        "share": _rates(row.share),
        "quota": _rates(row.quota),
        "policy": row.policy.value,
        "sent": row.sent,
    }


def _rates(pair: tuple[Rate, Rate]) -> dict[str, Json]:
    return {"messages": _units(pair[0]), "bytes": _units(pair[1])}


def _units(rate: Milli | None) -> float | None:
    return None if rate is None else to_units(rate)


def _counts(pair: Pair) -> dict[str, Json]:
    return {"messages": pair.messages, "bytes": pair.bytes}


def _check_part(part: int, parts: int) -> None:
    if not 1 <= part <= parts <= PARTS_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"part: expected 1 to {parts} of at most {PARTS_MAX}")


def _checked_peers(peers: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    if not peers:
        return ()
    check_size("peers", len(peers), PEERS_MAX)
    check_distinct((check_broker(broker) for broker, _ in peers), "peers")
    check_counts([sequence for _, sequence in peers], "peers")
    return tuple(peers)


def _checked_incarnations(incarnations: Sequence[int], peers: int) -> tuple[int, ...]:
    if len(incarnations) != peers:
        raise Malformed(Reason.BAD_STRUCTURE, "peers: expected an incarnation of each")
    return tuple(incarnations)
