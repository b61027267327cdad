"""A round in the usage log without its rows, and its JSON form (`rgd log cat`).

Law: an entry is rgd's record if its metadata has the property `rgd`, the version of the
record's schema (proto/rgd/v1/record.proto). Other payloads are not read.

A round that is too large for one entry is written as several (`rgd.wire.record_parts`), each of them a
record of some of its rows and peers. `rgd.wire.log_records` writes and reads records with their rows;
the log adapter stores and indexes entries.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from google.protobuf.message import DecodeError

from rgd.core.exchange.columns import NO_SHARES, ShareColumns
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow
from rgd.core.policies.model import Rate
from rgd.core.units import MILLI, NS_PER_MS, Milli, Pair, to_units
from rgd.wire import record_pb2
from rgd.wire.checks import check_broker, check_count, check_counts, check_distinct, check_weight
from rgd.wire.errors import Malformed, Oversize, Reason, UnknownVersion
from rgd.wire.frame import PAYLOAD_MAX, Entry, plain_payload
from rgd.wire.keys import is_in_order

#: The property of an entry's metadata with the version of a record in the payload.
RECORD_PROPERTY: Final = "rgd"
RECORD_VERSION: Final = 2
#: Ready for `Entry.properties`.
RECORD_PROPERTIES: Final = ((RECORD_PROPERTY, str(RECORD_VERSION)),)

#: Most peers that one record may name.
PEERS_MAX: Final = 10_000
#: Most parts of one round: far more than any round has rows for.
PARTS_MAX: Final = 1_000_000

#: Plain values, as `json.dumps` takes them.
Json = bool | int | float | str | None | list["Json"] | dict[str, "Json"]


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
    part, parts = _checked_part(record.part, record.parts)
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
        if parts > 1:
            proto.part, proto.parts = part, parts
    except ValueError as exc:
        raise Malformed(Reason.BAD_NUMBER, f"record: {exc}") from exc
    return proto


def header_of(entry: Entry) -> RoundRecord | None:
    """The record that an entry holds, without its rows; None: it is no round.

    Raises:
        UnknownVersion: written by a later rgd.
        WireError: with the reason, whatever else is wrong.
    """
    if version_of(entry) is None:
        return None
    proto = parsed(plain_payload(entry))
    return None if proto.HasField("policies") else header(proto)


def version_of(entry: Entry) -> int | None:
    """The version of the record that an entry holds; None: it is another producer's entry.

    Raises:
        UnknownVersion: written by a later rgd.
    """
    version = entry.property_of(RECORD_PROPERTY)
    if version not in (None, str(RECORD_VERSION)):
        raise UnknownVersion("record", version)
    return None if version is None else int(version)


def parsed(payload: bytes) -> record_pb2.RoundRecord:
    """The message that a payload holds."""
    if len(payload) > PAYLOAD_MAX:
        raise Oversize("record", len(payload), PAYLOAD_MAX)
    try:
        return record_pb2.RoundRecord.FromString(payload)
    except DecodeError as exc:
        raise Malformed(Reason.UNPARSABLE, f"record: {exc}") from exc


def header(proto: record_pb2.RoundRecord, rows: ShareColumns = NO_SHARES) -> RoundRecord:
    """A record with these rows, which are read apart."""
    peers = [(peer.broker, peer.sequence) for peer in proto.peers[: PEERS_MAX + 1]]
    part, parts = _checked_part(proto.part or 1, proto.parts or 1)
    return RoundRecord(
        sender=Sender(check_broker(proto.broker), proto.incarnation),
        sequence=check_count(proto.sequence, "sequence"),
        period_ns=check_count(proto.period_ns, "period"),
        rows=rows,
        peers=_checked_peers(peers),
        isolated=proto.isolated,
        weight=check_weight(proto.weight or MILLI),
        ended_ns=check_count(proto.ended_ns, "end"),
        last=proto.last,
        peer_incarnations=_checked_incarnations(proto.peer_incarnations, len(peers)),
        part=part,
        parts=parts,
        lost=check_count(proto.lost, "lost"),
        ungoverned=check_count(proto.ungoverned, "ungoverned"),
        unknown_granted=check_count(proto.unknown_granted, "unknown_granted"),
        unknown_refused=check_count(proto.unknown_refused, "unknown_refused"),
        policies_hash=check_count(proto.policies_hash, "policies_hash"),
    )


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


def _checked_part(part: int, parts: int) -> tuple[int, int]:
    if not 1 <= part <= parts <= PARTS_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"part: expected 1 to {parts} of at most {PARTS_MAX}")
    return part, parts


def _checked_peers(peers: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    if len(peers) > PEERS_MAX:
        raise Oversize("peers", len(peers), PEERS_MAX)
    check_distinct((check_broker(broker) for broker, _ in peers), "peers")
    check_counts([sequence for _, sequence in peers], "peers")
    return tuple(peers)


def _checked_incarnations(incarnations: Sequence[int], peers: int) -> tuple[int, ...]:
    if len(incarnations) != peers:
        raise Malformed(Reason.BAD_STRUCTURE, "peers: expected an incarnation of each")
    return tuple(incarnations)
