"""A round in the usage log: the payload of an entry, and its form for people (`rgd log cat`).

Law: an entry is rgd's report when its metadata carries the property `rgd`, the version of the
record's schema (proto/rgd/v1/record.proto); any other payload is not looked into. Decoding gives the
record back with its rows in order (by group, publish before dispatch).

The rows of usage are the same columns as in reports (`rgd.wire.columns`), beside them what was allowed.
Payloads are not compressed. Where entries go and how they are indexed is the log adapter's business.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from google.protobuf.message import DecodeError

from rgd.core.exchange.messages import RoundRecord, ShareRow, Speaker
from rgd.core.policies.model import Rate, SharePolicyName
from rgd.core.units import NS_PER_MS, Milli, Pair, to_units
from rgd.wire import record_pb2
from rgd.wire.checks import check_broker, check_count, check_counts, check_distinct
from rgd.wire.columns import decode_rows, encode_rows, filled, packed, row_key, unpacked
from rgd.wire.errors import Malformed, Oversize, Reason, UnknownVersion
from rgd.wire.frame import PAYLOAD_MAX, Entry

#: The property of an entry's metadata that says: the payload is a record of this version.
RECORD_PROPERTY: Final = "rgd"
RECORD_VERSION: Final = 1
#: Ready for `Entry.properties`.
RECORD_PROPERTIES: Final = ((RECORD_PROPERTY, str(RECORD_VERSION)),)

#: Most peers that one record may name.
PEERS_MAX: Final = 10_000

_POLICY_NUMBERS: Final = {
    SharePolicyName.MAX_MIN: record_pb2.SHARE_POLICY_MAX_MIN,
    SharePolicyName.RESIDUAL: record_pb2.SHARE_POLICY_RESIDUAL,
    SharePolicyName.PROPORTIONAL: record_pb2.SHARE_POLICY_PROPORTIONAL,
    SharePolicyName.STEAL: record_pb2.SHARE_POLICY_STEAL,
}
_POLICY_NAMES: Final[dict[int, SharePolicyName]] = {
    number: name for name, number in _POLICY_NUMBERS.items()
}

#: Plain values, as `json.dumps` takes them.
Json = bool | int | float | str | None | list["Json"] | dict[str, "Json"]


def in_order(record: RoundRecord) -> RoundRecord:
    """The record with its rows in the order in which they are stored."""
    return replace(record, rows=tuple(sorted(record.rows, key=_row_key)))


def encode_record(record: RoundRecord) -> bytes:
    """Write a record as an entry's payload; the entry needs `RECORD_PROPERTIES`.

    Raises:
        Oversize: too many rows or peers, or more than `PAYLOAD_MAX` bytes.
        Malformed: a row or peer comes twice, or a name or number cannot be one.
    """
    rows = sorted(record.rows, key=_row_key)
    try:
        payload = record_pb2.RoundRecord(
            broker=check_broker(record.speaker.broker),
            incarnation=record.speaker.incarnation,
            sequence=check_count(record.sequence, "sequence"),
            period_ns=check_count(record.period_ns, "period"),
            isolated=record.isolated,
            peers=[
                record_pb2.Peer(broker=broker, sequence=sequence)
                for broker, sequence in _checked_peers(record.peers)
            ],
            usage=encode_rows([row.usage for row in rows]),
            shares=_share_columns(rows),
        ).SerializeToString()
    except ValueError as exc:
        raise Malformed(Reason.BAD_NUMBER, f"record: {exc}") from exc
    if len(payload) > PAYLOAD_MAX:
        raise Oversize("record", len(payload), PAYLOAD_MAX)
    return payload


def decode_record(payload: bytes) -> RoundRecord:
    """Read the payload of an entry that carries `RECORD_PROPERTIES`.

    Raises:
        WireError: with the reason, whatever is wrong.
    """
    if len(payload) > PAYLOAD_MAX:
        raise Oversize("record", len(payload), PAYLOAD_MAX)
    try:
        proto = record_pb2.RoundRecord.FromString(payload)
    except DecodeError as exc:
        raise Malformed(Reason.UNPARSABLE, f"record: {exc}") from exc
    peers = [(peer.broker, peer.sequence) for peer in proto.peers[: PEERS_MAX + 1]]
    return RoundRecord(
        speaker=Speaker(check_broker(proto.broker), proto.incarnation),
        sequence=check_count(proto.sequence, "sequence"),
        period_ns=check_count(proto.period_ns, "period"),
        rows=_decode_share_rows(proto),
        peers=_checked_peers(peers),
        isolated=proto.isolated,
    )


def record_of(entry: Entry) -> RoundRecord | None:
    """The record that an entry holds; None: it is somebody else's entry.

    Raises:
        UnknownVersion: written by a later rgd.
        WireError: with the reason, whatever else is wrong.
    """
    version = entry.property_of(RECORD_PROPERTY)
    if version is None:
        return None
    if version != str(RECORD_VERSION):
        raise UnknownVersion("record", version)
    return decode_record(entry.payload)


def record_to_dict(record: RoundRecord) -> dict[str, Json]:
    """A record in plain values: rates in units per second, null for unlimited."""
    return {
        "broker": record.speaker.broker,
        "incarnation": record.speaker.incarnation,
        "sequence": record.sequence,
        "period_ms": record.period_ns / NS_PER_MS,
        "isolated": record.isolated,
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
        "admitted_total": _counts(usage.admitted_total),
        "wanted_total": _counts(usage.wanted_total),
        "refused": _counts(row.refused),
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


def _row_key(row: ShareRow) -> tuple[str, int]:
    return row_key(row.usage)


def _checked_peers(peers: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    if len(peers) > PEERS_MAX:
        raise Oversize("peers", len(peers), PEERS_MAX)
    check_distinct((check_broker(broker) for broker, _ in peers), "peers")
    check_counts([sequence for _, sequence in peers], "peers")
    return tuple(peers)


def _share_columns(rows: Sequence[ShareRow]) -> record_pb2.ShareColumns:
    return record_pb2.ShareColumns(
        share_messages=_encode_rates([row.share[0] for row in rows], "share"),
        share_bytes=_encode_rates([row.share[1] for row in rows], "share"),
        quota_messages=_encode_rates([row.quota[0] for row in rows], "quota"),
        quota_bytes=_encode_rates([row.quota[1] for row in rows], "quota"),
        policy=[_POLICY_NUMBERS[row.policy] for row in rows],
        refused_messages=packed([row.refused.messages for row in rows], "refused messages"),
        refused_bytes=packed([row.refused.bytes for row in rows], "refused bytes"),
        sent=[row.sent for row in rows],
    )


def _decode_share_rows(proto: record_pb2.RoundRecord) -> tuple[ShareRow, ...]:
    usage = decode_rows(proto.usage)
    columns, count = proto.shares, len(usage)
    share_messages = _decode_rates(columns.share_messages, count, "share")
    share_bytes = _decode_rates(columns.share_bytes, count, "share")
    quota_messages = _decode_rates(columns.quota_messages, count, "quota")
    quota_bytes = _decode_rates(columns.quota_bytes, count, "quota")
    refused_messages = unpacked(columns.refused_messages, count, "refused messages")
    refused_bytes = unpacked(columns.refused_bytes, count, "refused bytes")
    return tuple(
        map(
            ShareRow,
            usage,
            zip(share_messages, share_bytes, strict=True),
            zip(quota_messages, quota_bytes, strict=True),
            map(_policy_of, filled(columns.policy, count, "policy")),
            map(Pair, refused_messages, refused_bytes),
            map(bool, filled(columns.sent, count, "sent")),
        )
    )


def _encode_rates(rates: Sequence[Rate], what: str) -> Sequence[int]:
    """A column of rates plus one; 0 is unlimited."""
    check_counts([rate for rate in rates if rate is not None], what)
    return packed([0 if rate is None else rate + 1 for rate in rates], what)


def _decode_rates(column: Sequence[int], count: int, what: str) -> list[Rate]:
    return [value - 1 if value else None for value in unpacked(column, count, what)]


def _policy_of(number: int) -> SharePolicyName:
    name = _POLICY_NAMES.get(number)
    if name is None:
        raise Malformed(Reason.BAD_NUMBER, f"policy: {number} is not known")
    return name
