"""Numbers in place of names: what a receiver can read, what it asks for again, what is refused.

Not covered: bytes nobody means (tests/property/test_wire_hostile_bytes.py), the numbers of the rows
themselves (test_codec.py).
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Message, Report, Sender
from rgd.core.exchange.rows import UsageRow
from rgd.core.units import Kind, Pair
from rgd.wire import usage_pb2
from rgd.wire.codec import decode, encode
from rgd.wire.errors import Reason
from rgd.wire.name_dictionary import NAMES_MAX, NameDecoders, NameEncoder
from tests.support.cases import cases, refused
from tests.support.there import there
from tests.support.wire_values import in_order, varints

ME = Sender("b1", 7)


def row(group: str, wanted: int = 5, kind: Kind = Kind.PUBLISH) -> UsageRow:
    some = Pair(wanted, 2)
    return UsageRow(group, kind, 1, some, some)


def report(*rows: UsageRow, full: bool = False, sender: Sender = ME) -> Report:
    return Report(sender, 1, 1_000_000_000, rows=UsageColumns.of(*rows), full=full)


class Line:
    """One sender and one listener."""

    def __init__(self, numbering: NameEncoder | None = None) -> None:
        self.numbering = numbering or NameEncoder()
        self.name_decoders = NameDecoders()

    def say(self, message: Message, *, is_lost: bool = False) -> Report | None:
        payload = encode(message, self.numbering)
        return None if is_lost else self.hear(payload)

    def hear(self, payload: bytes) -> Report:
        message = decode(payload, self.name_decoders)
        assert isinstance(message, Report)
        return message


def proto_of(payload: bytes) -> usage_pb2.Message:
    assert payload[1] == 0, "a small message is not compressed"
    return usage_pb2.Message.FromString(payload[2:])


BOTH = [row("gold"), row("gold", 7, Kind.DISPATCH), row("trial", 9, Kind.DISPATCH)]


def test_a_name_travels_once() -> None:
    numbering = NameEncoder()
    first = proto_of(encode(report(*BOTH), numbering)).report
    again = proto_of(encode(report(*BOTH), numbering)).report
    assert list(first.names.groups) == ["gold", "trial"]
    assert not again.names.groups
    assert not again.rows.groups
    more = proto_of(encode(report(row("acme")), numbering)).report
    assert (list(more.names.numbers), list(more.names.groups)) == ([2], ["acme"])


def test_a_receiver_without_a_name_reads_no_rows_and_loses_none() -> None:
    line = Line()
    line.say(report(*BOTH))
    line.say(report(row("late")), is_lost=True)
    heard = line.say(replace(report(row("late")), rows_hash=99))
    assert heard == replace(report(), rows_hash=99)
    # What it has names for it can read.
    assert line.say(report(*BOTH)) is not None
    known = there(line.say(report(*BOTH)))
    assert len(known.rows) == 3
    # A name after the one that it missed is not taken for that one.
    later = there(line.say(report(row("later"))))
    assert later.rows.groups == ("later",)
    assert line.say(report(row("late"))) == report()


def test_a_full_dictionary_begins_again() -> None:
    line = Line(NameEncoder(names_max=3))
    for names in (["a", "b"], ["b", "c"], ["c", "d"], ["a", "d"]):
        said = report(*(row(name) for name in names))
        heard = there(line.say(said))
        assert in_order(heard) == said


def test_of_too_many_senders_the_longest_silent_one_sends_its_names_again() -> None:
    name_decoders = NameDecoders(senders_max=2)
    senders = [(Sender(f"b{place}", 1), NameEncoder()) for place in range(3)]
    for sender, numbering in senders:
        decode(encode(report(row("gold"), sender=sender), numbering), name_decoders)

    def reads(place: int) -> bool:
        sender, numbering = senders[place]
        message = decode(encode(report(row("gold"), sender=sender), numbering), name_decoders)
        assert isinstance(message, Report)
        return len(message.rows) == 1

    assert [reads(0), reads(1), reads(2)] == [False, True, True]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        pytest.param([row("gold"), row("gold", 6)], Reason.DUPLICATE, id="twice"),
        pytest.param([row("go ld")], Reason.BAD_NAME, id="name"),
    ],
)
def test_what_cannot_be_written_is_not(rows: Sequence[UsageRow], reason: Reason) -> None:
    with refused(reason):
        encode(report(*rows), NameEncoder())


@cases(
    "change, is_known, reason",
    {
        "not-ascending": ({"rows": {"numbers": bytes([1, 0])}}, False, Reason.BAD_NUMBER),
        "too-few": ({"rows": {"numbers": bytes([0])}}, False, Reason.BAD_COLUMNS),
        "kind": ({"rows": {"kinds": bytes([3, 4])}}, False, Reason.BAD_NUMBER),
        "names-and-numbers": ({"rows": {"groups": ["gold"]}}, False, Reason.BAD_STRUCTURE),
        "two-numbers-of-a-name": ({"names": {"groups": ["gold"] * 2}}, False, Reason.DUPLICATE),
        "two-names-of-a-number": ({"names": {"groups": ["gold", "other"]}}, True, Reason.DUPLICATE),
        "more-names-than-may-be": (
            {"names": {"numbers": varints(NAMES_MAX - 1, 1)}},
            True,
            Reason.OVERSIZE,
        ),
    },
)
def test_numbers_that_cannot_be_are_refused(
    change: dict[str, dict[str, bytes | list[str]]], is_known: bool, reason: Reason
) -> None:
    line, payload = Line(), encode(report(*BOTH), NameEncoder())
    if is_known:
        line.hear(payload)
    proto = proto_of(payload)
    for part, fields in change.items():
        for name in fields:
            getattr(proto.report, part).ClearField(name)
    proto.MergeFrom(usage_pb2.Message(report=change))  # type: ignore[arg-type]  # as a dict
    with refused(reason):
        line.hear(payload[:2] + proto.SerializeToString())


def test_names_are_sent_again_after_a_full_state_only_if_it_did_not_have_them() -> None:
    numbering = NameEncoder()
    encode(report(*BOTH), numbering)
    encode(report(row("gold"), full=True), numbering)
    after = proto_of(encode(report(*BOTH), numbering)).report
    assert list(after.names.groups) == ["trial"]
