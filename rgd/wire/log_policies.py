"""Policies in the usage log: keys and values as in the policies table (proto: Policies).

Law: the parts of one record have every policy of the snapshot that they were made
from, except those that `left_out` counts. So a log alone has every group's quota over
time, and the tenants charged for it.

A record of changes has only what differs from the record before it; None stands for deleted.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from rgd.core.exchange.messages import Sender
from rgd.core.policies.records import Value, records_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.wire import record_pb2
from rgd.wire.errors import Malformed, Reason
from rgd.wire.frame import PAYLOAD_MAX
from rgd.wire.parts import check_size, runs
from rgd.wire.policies import policy_text
from rgd.wire.record import Json

#: Bytes of policies in one entry, before they are compressed.
PART_BYTES: Final = PAYLOAD_MAX // 2
_WRITER: Final = "log"
_DELETED: Final = "null"
#: Policies of one entry that are read.
KEYS_MAX: Final = 200_000


@dataclass(frozen=True, slots=True)
class PolicyPart:
    """An entry of policies: all of them, or a part of a large record."""

    sender: Sender
    #: As `Report.policies_hash`.
    policies_hash: int
    #: Values are JSON, as in the policies table.
    texts: tuple[tuple[str, str], ...]
    #: Whether these are changes of what was recorded before.
    is_change: bool = False
    #: Policies that are not in the record, because it would be too large.
    left_out: int = 0
    part: int = 1
    parts: int = 1


class PolicyTexts:
    """Every policy in force by its key, written as JSON; what did not change is not written again."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[Value, str]] = {}

    def all(self) -> dict[str, str]:
        """The policies that were taken last; groups come first, then attachments."""
        return {key: text for key, (_, text) in self._texts.items()}

    def take(self, snapshot: PolicySnapshot) -> dict[str, str]:
        """Take the policies of a snapshot; answer with what changed: deleted ones become null.

        Raises:
            Malformed: a policy cannot be written.
        """
        before, now = self._texts, {}
        changed: dict[str, str] = {}
        for record in records_of(snapshot, _WRITER):
            key, value = record.key, record.value
            known = before.get(key)
            if known is None or known[0] is not value:
                known = (value, policy_text(key, value))
                if key not in before or before[key][1] != known[1]:
                    changed[key] = known[1]
            now[key] = known
        changed.update((key, _DELETED) for key in before if key not in now)
        self._texts = now
        return changed


def parts_of_policies(
    sender: Sender,
    policies_hash: int,
    texts: Mapping[str, str],
    *,
    is_change: bool,
    bytes_max: int,
) -> list[PolicyPart]:
    """A record of policies in as many parts as it takes; at most `bytes_max` of all of them."""
    items = tuple(texts.items())
    sizes = [len(key.encode()) + len(text.encode()) for key, text in items]
    kept = bisect_right(list(accumulate(sizes)), bytes_max)
    left_out = len(items) - kept
    parts = runs(sizes[:kept], PART_BYTES, KEYS_MAX) or [(0, 0)]
    return [
        PolicyPart(sender, policies_hash, items[begin:end], is_change, left_out, place, len(parts))
        for place, (begin, end) in enumerate(parts, 1)
    ]


def written_policies(part: PolicyPart) -> record_pb2.Policies:
    """The policies of an entry as they are written."""
    keys, values = zip(*part.texts, strict=True) if part.texts else ((), ())
    return record_pb2.Policies(
        keys=keys, values=values, changes=part.is_change, left_out=part.left_out
    )


def read_texts(proto: record_pb2.Policies) -> tuple[tuple[str, str], ...]:
    """The policies of an entry, not yet looked into.

    Raises:
        Oversize, Malformed: too many, or not as many values as keys.
    """
    check_size("policies", len(proto.keys), KEYS_MAX)
    if len(proto.keys) != len(proto.values):
        raise Malformed(Reason.BAD_COLUMNS, "policies: not as many values as keys")
    return tuple(zip(proto.keys, proto.values, strict=True))


def policies_to_dict(part: PolicyPart) -> dict[str, Json]:
    """An entry of policies in plain values; what is no JSON as text."""
    return {
        "broker": part.sender.broker,
        "incarnation": part.sender.incarnation,
        "policies_hash": f"{part.policies_hash:016x}" if part.policies_hash else None,
        "part": part.part,
        "parts": part.parts,
        "changes": part.is_change,
        "left_out": part.left_out,
        "policies": {key: _as_json(text) for key, text in part.texts},
    }


def _as_json(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
