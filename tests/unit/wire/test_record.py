"""Rounds in the usage log: which entries are ours, the form for people, each fault with its reason.

Not covered: whole ranges of values and arbitrary bytes (tests/property/test_wire_*.py), files.
"""

from dataclasses import replace

import numpy as np
import pytest

from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.policies.model import SharePolicyName
from rgd.core.units import COUNT_MAX, Kind, Pair
from rgd.wire import record, record_pb2
from rgd.wire.errors import Reason, UnknownVersion
from rgd.wire.frame import PAYLOAD_MAX, Entry, decode_entry, encode_entry
from rgd.wire.log_records import LogReader
from tests.support.cases import cases, refused
from tests.support.columns import shares_of
from tests.support.records import decoded, encoded
from tests.support.wire_values import varints

USAGE = UsageRow("gold", Kind.PUBLISH, 2, Pair(1500, 0), Pair(2500, 1))
ROW = ShareRow(
    USAGE,
    (2000, None),
    (100_000, None),
    SharePolicyName.STEAL,
    refused=Pair(1, 2),
    sent=False,
    admitted_total=Pair(10, 20),
    wanted_total=Pair(30, 40),
)
RECORD = RoundRecord(
    Sender("b1", 7),
    17,
    1_000_500_000,
    shares_of(ROW),
    peers=(("b2", 3), ("b0", 0)),
    isolated=True,
    ungoverned=5,
    unknown_granted=3,
    unknown_refused=2,
    policies_hash=0xABC,
    weight=2500,
    ended_ns=3_000_000_000,
    last=True,
    peer_incarnations=(0xFFFF_FFFF, 1),
)


def test_a_record_comes_back_through_an_entry() -> None:
    entry = Entry("b1", 1, 2, encoded(RECORD), record.RECORD_PROPERTIES)
    assert LogReader().read(decode_entry(encode_entry(entry))) == RECORD


@pytest.mark.parametrize("version", ["3", "", "x" * 500])
def test_a_record_of_an_unknown_version_is_refused(version: str) -> None:
    with pytest.raises(UnknownVersion) as caught:
        LogReader().read(Entry("p", 1, 2, b"", ((record.RECORD_PROPERTY, version),)))
    assert caught.value.reason is Reason.UNKNOWN_VERSION
    assert len(str(caught.value)) < 100


def test_the_form_for_people_is_in_units_per_second_and_null_is_unlimited() -> None:
    assert record.record_to_dict(RECORD) == {
        "broker": "b1",
        "incarnation": 7,
        "sequence": 17,
        "period_ms": 1000.5,
        "isolated": True,
        "part": 1,
        "parts": 1,
        "lost": 0,
        "weight": 2.5,
        "last": True,
        "ungoverned": 5,
        "unknown_granted": 3,
        "unknown_refused": 2,
        "policies_hash": "0000000000000abc",
        "peers": {"b2": 3, "b0": 0},
        "rows": [
            {
                "group": "gold",
                "kind": "publish",
                "topics": 2,
                "admitted": {"messages": 1.5, "bytes": 0.0},
                "wanted": {"messages": 2.5, "bytes": 0.001},
                "admitted_total": {"messages": 10, "bytes": 20},
                "wanted_total": {"messages": 30, "bytes": 40},
                "refused": {"messages": 1, "bytes": 2},
                "refused_by": {},
                "share": {"messages": 2.0, "bytes": None},
                "quota": {"messages": 100.0, "bytes": None},
                "policy": "steal",
                "sent": False,
            }
        ],
    }


def proto(**fields: object) -> record_pb2.RoundRecord:
    written = record_pb2.RoundRecord.FromString(encoded(RECORD))
    for name, value in fields.items():
        setattr(written, name, value)
    return written


def columns(**numbers: list[int]) -> record_pb2.RoundRecord:
    """The record with other numbers in columns of differences, of which there is nothing before."""
    written = proto()
    for name, values in numbers.items():
        setattr(written.chained, name, varints(*(2 * value for value in values)))
    return written


def peers(*brokers: str) -> record_pb2.RoundRecord:
    written = proto()
    written.peers.extend(record_pb2.Peer(broker=broker) for broker in brokers)
    return written


def incarnations(*values: int) -> record_pb2.RoundRecord:
    written = proto()
    del written.peer_incarnations[:]
    written.peer_incarnations.extend(values)
    return written


@cases(
    "written, reason",
    {
        "no-broker": (proto(broker=""), Reason.BAD_NAME),
        "sequence-large": (proto(sequence=COUNT_MAX + 1), Reason.BAD_NUMBER),
        "period-large": (proto(period_ns=COUNT_MAX + 1), Reason.BAD_NUMBER),
        "policy-unknown": (columns(policy=[4]), Reason.BAD_NUMBER),
        "policy-far": (columns(policy=[256]), Reason.BAD_NUMBER),
        "quota-long": (columns(quota_bytes=[1, 2]), Reason.BAD_COLUMNS),
        "share-large": (columns(share_bytes=[COUNT_MAX]), Reason.BAD_NUMBER),
        "topics-large": (columns(topics=[COUNT_MAX + 1]), Reason.BAD_NUMBER),
        "sent-twice": (columns(sent=[1]), Reason.BAD_NUMBER),
        "sent-long": (columns(sent=[0, 1]), Reason.BAD_COLUMNS),
        "total-large": (columns(admitted_bytes_total=[COUNT_MAX + 1]), Reason.BAD_NUMBER),
        "slot-not-given": (columns(slots=[1]), Reason.BAD_NUMBER),
        "total-long": (columns(wanted_bytes_total=[1, 1]), Reason.BAD_COLUMNS),
        "counted-large": (columns(admitted_messages=[COUNT_MAX]), Reason.BAD_NUMBER),
        "weight-large": (proto(weight=1_000_000_001), Reason.BAD_NUMBER),
        "peer-twice": (peers("b2"), Reason.DUPLICATE),
        "incarnations-many": (incarnations(1, 2, 3), Reason.BAD_STRUCTURE),
        "incarnations-few": (incarnations(1), Reason.BAD_STRUCTURE),
        "end-large": (proto(ended_ns=COUNT_MAX + 1), Reason.BAD_NUMBER),
        "peer-unnamed": (peers(""), Reason.BAD_NAME),
        "peers-many": (
            peers(*(f"p{number}" for number in range(record.PEERS_MAX))),
            Reason.OVERSIZE,
        ),
    },
)
def test_what_is_no_record_is_refused_with_its_reason(
    written: record_pb2.RoundRecord, reason: Reason
) -> None:
    with refused(reason):
        decoded(written.SerializeToString())


def test_bytes_that_are_no_protobuf_are_refused() -> None:
    with refused(Reason.UNPARSABLE):
        decoded(b"\xff")
    with refused(Reason.OVERSIZE):
        decoded(bytes(PAYLOAD_MAX + 1))


@cases(
    "value, reason",
    {
        "row-twice": (replace(RECORD, rows=shares_of(ROW, ROW)), Reason.DUPLICATE),
        "peer-twice": (replace(RECORD, peers=(("b", 1), ("b", 2))), Reason.DUPLICATE),
        "peer-negative": (replace(RECORD, peers=(("b", -1),)), Reason.BAD_NUMBER),
        "incarnation": (replace(RECORD, sender=Sender("b", -1)), Reason.BAD_NUMBER),
        "share": (
            replace(RECORD, rows=shares_of(replace(ROW, share=(-2, None)))),
            Reason.BAD_NUMBER,
        ),
        "quota-large": (
            replace(RECORD, rows=shares_of(replace(ROW, quota=(None, COUNT_MAX)))),
            Reason.BAD_NUMBER,
        ),
        "policy-unknown": (
            replace(RECORD, rows=replace(RECORD.rows, policies=np.array([4], np.uint8))),
            Reason.BAD_NUMBER,
        ),
        "weight-0": (replace(RECORD, weight=0), Reason.BAD_NUMBER),
        "refused": (
            replace(RECORD, rows=shares_of(replace(ROW, refused=Pair(0, -1)))),
            Reason.BAD_NUMBER,
        ),
        "large": (
            replace(
                RECORD,
                rows=shares_of(
                    *(
                        replace(ROW, usage=replace(USAGE, group=f"{number:0512}"))
                        for number in range(11_000)
                    )
                ),
            ),
            Reason.OVERSIZE,
        ),
    },
)
def test_what_could_not_be_read_back_is_not_written(value: RoundRecord, reason: Reason) -> None:
    with refused(reason):
        encoded(value)
