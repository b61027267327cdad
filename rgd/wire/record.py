"""A round in the usage log: the payload of an entry, and its JSON form (`rgd log cat`).

Law: an entry is rgd's record if its metadata has the property `rgd`, the version of the
record's schema (proto/rgd/v1/record.proto). Other payloads are not read. Decoding returns the
record with its rows in order (by group, publish before dispatch).

A round that is too large for one entry is written as several (`rgd.wire.record_parts`), each of them a
record of some of its rows and peers.
The rows of usage are the same columns as in reports (`rgd.wire.columns`), with cumulative counters, shares and quotas.
An older record without `weight` has a weight of 1. Older records also have no time of
the monotonic clock and no incarnations of peers.
These are records of version 1, which stay readable; `rgd.wire.log_records` writes today's.
The log adapter stores and indexes entries.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from rgd.core.exchange.columns import POLICIES, Codes, Ints, ShareColumns, UsageColumns
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow
from rgd.core.policies.model import Rate, SharePolicyName
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI, NS_PER_MS, Milli, Pair, to_units
from rgd.wire import record_pb2
from rgd.wire.checks import check_broker, check_count, check_counts, check_distinct, check_weight
from rgd.wire.columns import (
    added,
    as_counts,
    checked,
    decode_rows,
    encode_rows,
    read_columns,
    side_by_side,
    write_columns,
)
from rgd.wire.errors import Malformed, Oversize, Reason, UnknownVersion
from rgd.wire.frame import PAYLOAD_MAX, Entry, plain_payload
from rgd.wire.keys import is_in_order
from rgd.wire.usage_pb2 import UsageColumns as UsageProto
from rgd.wire.varints import zigzag

#: The property of an entry's metadata with the version of a record in the payload.
RECORD_PROPERTY: Final = "rgd"
RECORD_VERSION: Final = 1
#: Rows as differences (`rgd.wire.log_records`).
CHAINED_VERSION: Final = 2
#: Ready for `Entry.properties`.
RECORD_PROPERTIES: Final = ((RECORD_PROPERTY, str(RECORD_VERSION)),)

#: Most peers that one record may name.
PEERS_MAX: Final = 10_000
#: Most parts of one round: far more than any round has rows for.
PARTS_MAX: Final = 1_000_000

_POLICY_NUMBERS: Final = {
    SharePolicyName.MAX_MIN: record_pb2.SHARE_POLICY_MAX_MIN,
    SharePolicyName.RESIDUAL: record_pb2.SHARE_POLICY_RESIDUAL,
    SharePolicyName.PROPORTIONAL: record_pb2.SHARE_POLICY_PROPORTIONAL,
    SharePolicyName.STEAL: record_pb2.SHARE_POLICY_STEAL,
}
#: The number of the policy at each place in `POLICIES`; numbers have no gaps, so sorting turns it round.
_NUMBER_OF: Final = np.array([_POLICY_NUMBERS[policy] for policy in POLICIES], np.uint8)
_PLACE_OF: Final = np.argsort(_NUMBER_OF).astype(np.uint8)
_POLICY_MIN: Final = min(_POLICY_NUMBERS.values())
_POLICY_MAX: Final = max(_POLICY_NUMBERS.values())

#: The columns of numbers, in the order in which they are computed with here.
_NUMBERS: Final = (
    "share_messages",
    "share_bytes",
    "quota_messages",
    "quota_bytes",
    "policy",
    "refused_messages",
    "refused_bytes",
    "sent",
)
#: Columns of `usage` that only records of version 1 have: admitted, and wanted less admitted.
_TOTALS: Final = (
    "admitted_messages_total",
    "admitted_bytes_total",
    "unmet_messages_total",
    "unmet_bytes_total",
)

#: Plain values, as `json.dumps` takes them.
Json = bool | int | float | str | None | list["Json"] | dict[str, "Json"]


def in_order(record: RoundRecord) -> RoundRecord:
    """The record with its rows in the order in which they are stored."""
    if is_in_order(record.rows.usage):
        return record
    return replace(record, rows=record.rows.in_order())


def encode_record(record: RoundRecord) -> bytes:
    """Write a record as an entry's payload; the entry needs `RECORD_PROPERTIES`.

    Raises:
        Oversize: too many rows or peers, or more than `PAYLOAD_MAX` bytes.
        Malformed: a row or peer comes twice, or a name or number cannot be one.
    """
    rows = in_order(record).rows
    proto = write_header(record)
    encode_rows(rows.usage, proto.usage, period_ns=record.period_ns)
    _write_totals(rows, proto.usage)
    _write_shares(rows, proto.shares)
    payload = proto.SerializeToString()
    if len(payload) > PAYLOAD_MAX:
        raise Oversize("record", len(payload), PAYLOAD_MAX)
    return payload


def write_header(record: RoundRecord) -> record_pb2.RoundRecord:
    """A record without its rows.

    Raises:
        Oversize, Malformed: as `encode_record`.
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


def decode_record(payload: bytes) -> RoundRecord:
    """Read the payload of an entry that carries `RECORD_PROPERTIES`.

    Raises:
        WireError: with the reason, whatever is wrong.
    """
    return with_rows(parsed(payload))


def with_rows(proto: record_pb2.RoundRecord) -> RoundRecord:
    """A record of version 1 with its rows."""
    record = header(proto)
    usage = decode_rows(proto.usage, period_ns=record.period_ns)
    totals = _decode_totals(proto.usage, len(usage))
    return replace(record, rows=_decode_shares(proto.shares, usage, totals))


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
    if version not in (None, str(RECORD_VERSION), str(CHAINED_VERSION)):
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


def header(proto: record_pb2.RoundRecord) -> RoundRecord:
    """Everything of a record but its rows."""
    peers = [(peer.broker, peer.sequence) for peer in proto.peers[: PEERS_MAX + 1]]
    part, parts = _checked_part(proto.part or 1, proto.parts or 1)
    return RoundRecord(
        sender=Sender(check_broker(proto.broker), proto.incarnation),
        sequence=check_count(proto.sequence, "sequence"),
        period_ns=check_count(proto.period_ns, "period"),
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
    if incarnations and len(incarnations) != peers:
        raise Malformed(Reason.BAD_STRUCTURE, "peers: expected an incarnation of each")
    return tuple(incarnations)


def _write_shares(rows: ShareColumns, proto: record_pb2.ShareColumns) -> None:
    """What each row was allowed; a rate plus one, so that 0 is unlimited."""
    count = len(rows)
    write_columns(
        proto,
        _NUMBERS,
        checked(rows.share - NO_RATE, (count, 2), "share"),
        checked(rows.quota - NO_RATE, (count, 2), "quota"),
        _policy_numbers(rows.policies, count),
        checked(rows.refused, (count, 2), "refused"),
        rows.sent,
    )


def _write_totals(rows: ShareColumns, proto: UsageProto) -> None:
    admitted = checked(rows.admitted_total, (len(rows), 2), "admitted total")
    wanted = checked(rows.wanted_total, (len(rows), 2), "wanted total")
    write_columns(proto, _TOTALS, admitted, zigzag(wanted - admitted))


def _decode_totals(proto: UsageProto, count: int) -> tuple[Ints, Ints]:
    """[rows, 2] what was admitted since the start, and what was wanted."""
    admitted, unmet = read_columns(proto, _TOTALS, count).reshape(2, 2, count)
    totals = side_by_side(as_counts(admitted, "totals"))
    return totals, added(totals, unmet, "wanted total")


def _decode_shares(
    proto: record_pb2.ShareColumns, usage: UsageColumns, totals: tuple[Ints, Ints]
) -> ShareColumns:
    """What each row of `usage` was allowed."""
    numbers = as_counts(read_columns(proto, _NUMBERS, len(usage)), "shares")
    policies, sent = numbers[4], numbers[7]
    if len(usage):
        if not _POLICY_MIN <= policies.min() <= policies.max() <= _POLICY_MAX:
            raise Malformed(Reason.BAD_NUMBER, "policy: one is not known")
        if sent.max() > 1:
            raise Malformed(Reason.BAD_NUMBER, "sent: expected 0 or 1")
    return ShareColumns(
        usage=usage,
        share=side_by_side(numbers[0:2] + NO_RATE),
        quota=side_by_side(numbers[2:4] + NO_RATE),
        policies=_PLACE_OF[policies - _POLICY_MIN],
        refused=side_by_side(numbers[5:7]),
        sent=sent == 1,
        admitted_total=totals[0],
        wanted_total=totals[1],
    )


def _policy_numbers(policies: Codes, count: int) -> Codes:
    if policies.shape != (count,) or policies.max(initial=0) >= len(POLICIES):
        raise Malformed(Reason.BAD_NUMBER, f"policy: expected {count} places below {len(POLICIES)}")
    return _NUMBER_OF[policies]
