"""What the daemon logs, as entries of one segment after another, and back.

Law: `LogReader` gives back what `LogEncoder` was given, entry by entry, of one log in order; it may begin
anywhere, and refuses records that continue one it has not read (`rgd.wire.chain`), at most `KEY_EVERY` of
them. Other producers' entries are read as None.

Every segment begins with the policies in force, so each can be read without those before it, which may be
deleted. Rows are differences, and payloads are compressed; Pulsar reads the compression from the metadata.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from rgd.core.exchange.messages import Loggable, PoliciesInForce, RoundRecord, Sender
from rgd.wire import record_pb2
from rgd.wire.chain import KEY_EVERY, Chain, ChainReader
from rgd.wire.checks import check_broker, check_count
from rgd.wire.errors import Malformed, Oversize, Reason, WireError
from rgd.wire.frame import PAYLOAD_MAX, Entry, compressed_payload, plain_payload
from rgd.wire.log_policies import (
    PolicyPart,
    PolicyTexts,
    parts_of_policies,
    read_texts,
    written_policies,
)
from rgd.wire.parts import check_size, parsed
from rgd.wire.record import (
    PARTS_MAX,
    RECORD_PROPERTIES,
    LoggedRound,
    in_order,
    rounds_of,
    version_of,
    write_header,
)
from rgd.wire.record_parts import parts_of
from rgd.wire.row_range import NO_ROWS

#: A reader that wants an entry begins so many before it.
CONTEXT_ENTRIES: Final = KEY_EVERY

#: Entries that are read together, and about how many rows: some 150 bytes each.
ENTRIES_TOGETHER: Final = 16_384
ROWS_TOGETHER: Final = 50_000

#: The most bytes of policies that a segment begins with, before they are compressed.
POLICIES_BYTES_MAX: Final = 32 << 20

_T = TypeVar("_T")
#: What one entry holds; as it is read, None is another producer's, and an error says why it cannot be read.
Answer = LoggedRound | PolicyPart | WireError | None
Item = RoundRecord | PolicyPart | bytes
_Record = record_pb2.RoundRecord

#: A chain's name is an unsigned number of 64 bits.
_NAME_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Payload:
    """An entry's payload, with the metadata that describes it."""

    data: bytes
    properties: tuple[tuple[str, str], ...]
    #: Ready for `Entry.unknown`.
    metadata: bytes = b""


class LogEncoder:
    """Writes the entries of one log; not for several threads."""

    def __init__(self, *, policies_bytes_max: int = POLICIES_BYTES_MAX) -> None:
        self._policies_bytes_max = policies_bytes_max
        self._chain = Chain()
        #: Entries of any sort since the newest key record.
        self._since_key = 0
        #: The policies in force.
        self._policies: PoliciesInForce | None = None
        self._texts = PolicyTexts()

    def restart(self) -> None:
        """Continue nothing: what was written last may not be there."""
        self._chain.restart()

    def begin_segment(self) -> list[PolicyPart]:
        """What a new segment begins with."""
        self.restart()
        return self._parts(self._texts.all(), is_change=False)

    def items_of(self, logged: Loggable, *, has_segment: bool = True) -> list[Item]:
        """What is logged as items for entries: a large round in parts, of policies what changed.

        Where there is no segment yet, the first one will begin with the policies.
        """
        if isinstance(logged, bytes):
            return [logged]
        if isinstance(logged, RoundRecord):
            return list(parts_of(logged))
        changes = self._texts.take(logged.snapshot)
        is_first, self._policies = self._policies is None, logged
        if not has_segment or not (changes or is_first):
            return []
        return [*self._parts(changes, is_change=not is_first)]

    def encode(self, item: Item, *, lost: int = 0) -> Payload:
        """Write one item, behind the one that was written before; a round carries `lost`.

        Raises:
            Oversize: too many rows or peers, or more than `PAYLOAD_MAX` bytes.
            Malformed: a row or peer comes twice, or a name or number cannot be one.
        """
        self._since_key += 1
        if isinstance(item, bytes):
            return Payload(item, ())
        if isinstance(item, PolicyPart):
            proto = _policies_proto(item)
        else:
            record = in_order(replace(item, lost=lost) if lost else item)
            proto = write_header(record)
            self._write_rows(record, proto)
        body = proto.SerializeToString()
        if len(body) > PAYLOAD_MAX:
            self.restart()
            raise Oversize("record", len(body), PAYLOAD_MAX)
        data, metadata = compressed_payload(body)
        return Payload(data, RECORD_PROPERTIES, metadata)

    def _parts(self, texts: Mapping[str, str], *, is_change: bool) -> list[PolicyPart]:
        """Some of the policies in force as items; nothing as long as none are known."""
        policies = self._policies
        if policies is None:
            return []
        return parts_of_policies(
            policies.sender,
            policies.policies_hash,
            texts,
            is_change=is_change,
            bytes_max=self._policies_bytes_max,
        )

    def _write_rows(self, record: RoundRecord, proto: record_pb2.RoundRecord) -> None:
        if self._since_key >= KEY_EVERY:
            # Policies and other entries count too, so that `CONTEXT_ENTRIES` always reach a key record.
            self.restart()
        self._chain.write(
            record.rows,
            proto.chained,
            name=(record.sequence * PARTS_MAX + record.part) & _NAME_MASK,
            period_ns=record.period_ns,
        )
        if proto.chained.link == 0:
            self._since_key = 0


class LogReader:
    """Reads the records of one log, entry by entry."""

    def __init__(self) -> None:
        self._rows = ChainReader()

    def read_all(
        self,
        items: Iterable[tuple[_T, Entry | None]],
        *,
        headers: Callable[[int], bool] | None = None,
        names: set[str] | None = None,
    ) -> Iterator[tuple[_T, Answer]]:
        """What the next entries hold, each with what came with it.

        Up to `ENTRIES_TOGETHER` entries, or of some `ROWS_TOGETHER` rows, are read together. With `headers` only records
        with a sequence for which it is true, their own or a peer's, are read, without their rows; others are None.
        `names` receives the names of all groups with rows.
        """
        held, rows = list[tuple[_T, _Record | Answer]](), 0
        for item, entry in items:
            proto = None if entry is None else tried(_parsed, entry)
            if isinstance(proto, _Record):
                rows += proto.chained.rows
                if names is not None:
                    names.update(proto.chained.fresh.groups)
                # 0: no report of it was received yet.
                peers = (peer.sequence for peer in proto.peers if peer.sequence > 0)
                if headers and not headers(proto.sequence) and not any(map(headers, peers)):
                    proto = None
            held.append((item, proto))
            if rows >= ROWS_TOGETHER or len(held) >= ENTRIES_TOGETHER:
                yield from self._all(held, has_rows=headers is None)
                held, rows = [], 0
        yield from self._all(held, has_rows=headers is None)

    def _all(
        self, held: Sequence[tuple[_T, _Record | Answer]], *, has_rows: bool
    ) -> Iterator[tuple[_T, Answer]]:
        protos = [proto for _, proto in held if isinstance(proto, _Record)]
        rows = self._rows.read(protos) if has_rows else [NO_ROWS] * len(protos)
        rounds = iter(rounds_of(protos, rows))
        for item, proto in held:
            yield item, next(rounds) if isinstance(proto, _Record) else proto

    def read(self, entry: Entry) -> RoundRecord | PolicyPart | None:
        """What the next entry holds; None: another producer's.

        Raises:
            UnknownVersion: written by a later rgd.
            WireError: with the reason, whatever else is wrong; `Reason.UNLINKED` where an entry before it
                was not read.
        """
        [(_, found)] = self.read_all([(None, entry)])
        if isinstance(found, WireError):
            raise found
        return found.alone() if isinstance(found, LoggedRound) else found


def tried(read: Callable[..., _T], *arguments: object) -> _T | WireError:
    """What a reader returns, or raises."""
    try:
        return read(*arguments)
    except WireError as error:
        return error


def _parsed(entry: Entry) -> record_pb2.RoundRecord | PolicyPart | None:
    """A record whose rows are still to be read, or what else an entry holds."""
    if version_of(entry) is None:
        return None
    payload = plain_payload(entry)
    check_size("record", len(payload), PAYLOAD_MAX)
    proto = parsed(_Record, payload, "record")
    if proto.HasField("policies"):
        return _policies_part(proto)
    check_count(proto.period_ns, "period")
    return proto


def _policies_proto(part: PolicyPart) -> record_pb2.RoundRecord:
    return record_pb2.RoundRecord(
        broker=check_broker(part.sender.broker),
        incarnation=part.sender.incarnation,
        policies_hash=check_count(part.policies_hash, "policies_hash"),
        part=part.part,
        parts=part.parts,
        policies=written_policies(part),
    )


def _policies_part(proto: record_pb2.RoundRecord) -> PolicyPart:
    if not 1 <= proto.part <= proto.parts <= PARTS_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"part: expected 1 to {proto.parts}")
    return PolicyPart(
        Sender(check_broker(proto.broker), proto.incarnation),
        check_count(proto.policies_hash, "policies_hash"),
        read_texts(proto.policies),
        proto.policies.changes,
        check_count(proto.policies.left_out, "left_out"),
        proto.part,
        proto.parts,
    )
