"""One record of the usage log as bytes, and back: a key record, which continues no other."""

from rgd.core.exchange.messages import RoundRecord
from rgd.wire.frame import Entry, plain_payload
from rgd.wire.log_records import LogEncoder, LogReader
from rgd.wire.record import RECORD_PROPERTIES


def encoded(record: RoundRecord) -> bytes:
    """The payload, without its compression."""
    payload = LogEncoder().encode(record)
    return plain_payload(Entry("b", 1, 2, payload.data, unknown=payload.metadata))


def decoded(payload: bytes) -> RoundRecord:
    """What it is read as."""
    record = LogReader().read(Entry("b", 1, 2, payload, RECORD_PROPERTIES))
    assert isinstance(record, RoundRecord)
    return record
