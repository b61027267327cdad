"""Values that can travel: the recorded vectors, and Hypothesis strategies for everything on the wire.

Each strategy covers the whole range that the format allows, edges included; what it leaves out is what
an encoder refuses, and that has tests of its own in tests/unit/wire.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.limits import SHARDS_MAX
from rgd.core.exchange.messages import (
    ALL_ROWS,
    Ask,
    Claim,
    Goodbye,
    Hello,
    Message,
    Report,
    RoundRecord,
    Sender,
    Span,
)
from rgd.core.exchange.precision import rounded
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.exchange.shards import LAYOUTS_MAX, WHOLE, Shard
from rgd.core.policies.model import (
    UNLIMITED,
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    Group,
    Limit,
    LocalLimit,
    Rates,
    SharePolicyName,
    TopicSplit,
)
from rgd.core.policies.records import REVISION_MAX, PolicyRecord, Value, subscription_name
from rgd.core.shares.model import PPM
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import COUNT_MAX, MILLI, QUOTA_MAX, Kind, Pair
from rgd.wire.frame import BrokerEntryMetadata, Entry
from rgd.wire.keys import is_in_order
from tests.support.columns import shares_of

U64_MAX = (1 << 64) - 1
_VECTORS = Path(__file__).resolve().parents[1] / "data" / "vectors"


def vectors(name: str) -> Any:
    """A file of bytes that Apache Pulsar 4.0.8 itself wrote, or of PIP-82's examples."""
    return json.loads((_VECTORS / name).read_text(encoding="utf-8"))


def varints(*numbers: int) -> bytes:
    """Packed varints, one number after the other: what protobuf's documentation says, not our code."""
    written = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            written.append(rest & 0x7F | 0x80)
            rest >>= 7
        written.append(rest)
    return bytes(written)


counts = st.integers(0, 9) | st.integers(0, COUNT_MAX)
u64s = st.integers(0, U64_MAX)
revisions = st.integers(0, 9) | st.integers(0, REVISION_MAX)
pairs = st.builds(Pair, counts, counts)
entity_names = st.text("abcdefgXYZ0189-=:._", min_size=1, max_size=12)
printable = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)
senders = st.builds(Sender, printable, u64s)
kinds = st.sampled_from(Kind)
usage_rows = st.builds(UsageRow, entity_names, kinds, counts, pairs, pairs)


def _row_identity(row: UsageRow) -> tuple[str, Kind]:
    return row.group, row.kind


#: Periods around a second too, so that rates of whole counts come up.
periods_ns = counts | st.integers(900_000_000, 1_100_000_000)
usage_columns = st.lists(usage_rows, max_size=8, unique_by=_row_identity).map(
    lambda rows: UsageColumns.of(*rows)
)
#: As brokers report them.
rounded_columns = usage_columns.map(
    lambda rows: replace(rows, admitted=rounded(rows.admitted), wanted=rounded(rows.wanted))
)
weights = st.integers(1, 1_000_000_000)
_spans = st.tuples(u64s, st.integers(1, 1 << 64)).filter(lambda ends: ends[0] < ends[1])
spans = st.just(ALL_ROWS) | _spans.map(lambda ends: Span(*ends))
shards = st.just(WHOLE) | st.integers(2, SHARDS_MAX).flatmap(
    lambda count: st.builds(Shard, st.integers(0, count - 1), st.just(count))
)
layouts = st.lists(counts, min_size=2, max_size=SHARDS_MAX).map(tuple)
_reports = st.builds(
    Report,
    senders,
    sequence=counts,
    period_ns=periods_ns,
    rows=rounded_columns,
    full=st.booleans(),
    rows_hash=u64s,
    weight=weights,
    policies_hash=u64s,
    claim=st.sampled_from(Claim),
    rival=u64s,
    more=st.booleans(),
    shard=shards,
    shards=st.integers(1, SHARDS_MAX),
    shard_sequences=st.lists(layouts, max_size=LAYOUTS_MAX).map(tuple),
)
reports = st.builds(
    lambda report, span: replace(report, span=span if report.full else ALL_ROWS), _reports, spans
)
messages: st.SearchStrategy[Message] = st.one_of(
    reports,
    st.builds(Hello, senders, st.integers(1, SHARDS_MAX)),
    st.builds(Goodbye, senders),
    st.builds(Ask, senders, printable, st.booleans(), shards),
)

#: A rate as a share or quota carries it.
maybe_rates = st.none() | st.integers(0, QUOTA_MAX * MILLI)
share_rows = st.builds(
    ShareRow,
    usage_rows,
    st.tuples(maybe_rates, maybe_rates),
    st.tuples(maybe_rates, maybe_rates),
    st.sampled_from(SharePolicyName),
    pairs,
    st.booleans(),
    admitted_total=pairs,
    wanted_total=pairs,
)
_round_records = st.builds(
    RoundRecord,
    senders,
    counts,
    periods_ns,
    st.lists(share_rows, max_size=6, unique_by=lambda row: _row_identity(row.usage)).map(
        lambda rows: shares_of(*rows)
    ),
    st.dictionaries(printable, counts, max_size=4).map(lambda peers: tuple(peers.items())),
    st.booleans(),
    weights,
    lost=counts,
)
_parts = st.integers(1, 1_000_000).flatmap(
    lambda parts: st.tuples(st.integers(1, parts), st.just(parts))
)
round_records = st.builds(
    lambda record, part: replace(
        record, part=part[0], parts=part[1], peer_incarnations=tuple(range(len(record.peers)))
    ),
    _round_records,
    _parts,
)

_stock_groups = st.builds(
    GroupUsage, printable, st.none() | pairs, st.none() | pairs, st.none() | counts
)
stock_reports = st.builds(StockReport, printable, st.lists(_stock_groups, max_size=5).map(tuple))

entries = st.builds(
    Entry,
    producer_name=st.text(max_size=12),
    sequence_id=u64s,
    publish_time=u64s,
    payload=st.binary(max_size=200),
    properties=st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=3).map(tuple),
    broker=st.none() | st.builds(BrokerEntryMetadata, st.none() | u64s, st.none() | u64s),
    #: Field 6 (partition_key) and field 11 (num_messages_in_batch), which rgd does not know.
    unknown=st.sampled_from([b"", b"\x32\x03key", b"\x58\x0a", b"\x32\x00\x58\x01"]),
    is_checksummed=st.booleans(),
)

_rates = st.builds(
    Rates,
    *(st.none() | st.integers(1, 5_000) | st.integers(1, QUOTA_MAX * MILLI) for _ in range(2)),
)
limits = st.builds(Limit, _rates, _rates)
#: Not set, set to no limit, and set: three things that must stay apart.
_maybe_rates = st.none() | st.just(UNLIMITED) | _rates
local_limits = st.builds(
    LocalLimit,
    publish=_maybe_rates,
    dispatch=_maybe_rates,
    dispatch_period_s=st.just(1) | st.integers(1, (1 << 31) - 1),
    dispatch_relative=st.booleans(),
)
_backlog_quotas = st.builds(
    BacklogQuota,
    size_bytes=st.integers(-1, 9) | st.integers(-(1 << 63), (1 << 63) - 1),
    age_s=st.integers(-1, 9) | st.integers(-(1 << 31), (1 << 31) - 1),
    action=st.sampled_from(BacklogAction),
)
backlogs = st.builds(
    BacklogQuotas, size=st.none() | _backlog_quotas, age=st.none() | _backlog_quotas
)
_full_namespaces = st.tuples(entity_names, entity_names).map("/".join)
#: Often with what a key must escape (rgd.core.policies.records).
_local_topics = printable | st.text("eu|%7C25", min_size=1, max_size=12)
_full_topics = st.tuples(
    st.sampled_from(["persistent://", "non-persistent://"]),
    _full_namespaces,
    st.just("/"),
    _local_topics,
).map("".join)
_subscriptions = st.builds(subscription_name, _full_topics, printable)

#: What a name after each prefix may be, and what is kept under it.
_POLICIES: dict[str, tuple[st.SearchStrategy[str], st.SearchStrategy[Value]]] = {
    "tenant:": (entity_names, entity_names),
    "namespace:": (_full_namespaces, entity_names),
    "topic:": (_full_topics, entity_names),
    "limit:broker": (st.just(""), local_limits),
    "limit:namespace:": (_full_namespaces, local_limits),
    "limit:topic:": (_full_topics, local_limits),
    "limit:subscription:": (_subscriptions, local_limits),
    "limit:namespace-subscriptions:": (_full_namespaces, local_limits),
    "limit:topic-subscriptions:": (_full_topics, local_limits),
    "backlog:namespace:": (_full_namespaces, backlogs),
    "backlog:topic:": (_full_topics, backlogs),
}


def _groups(name: str) -> st.SearchStrategy[Group]:
    policies = st.none() | st.sampled_from(SharePolicyName)
    splits = st.none() | st.sampled_from(TopicSplit)
    flags, softs = st.booleans(), st.none() | st.integers(1, PPM)
    return st.builds(Group, st.just(name), limits, flags, flags, softs, policies, splits)


@st.composite
def policy_records(draw: st.DrawFn) -> PolicyRecord:
    """A record of any kind; the value belongs to the key."""
    prefix = draw(st.sampled_from(["group:", *_POLICIES]))
    if prefix == "group:":
        name = draw(entity_names)
        values: st.SearchStrategy[Value] = _groups(name)
    else:
        names, values = _POLICIES[prefix]
        name = draw(names)
    value = draw(st.none() | values)
    return PolicyRecord(prefix + name, draw(revisions), draw(printable), value)


def in_order(message: Message) -> Message:
    """The message with its rows ordered by group, as they are sent without a dictionary."""
    if not isinstance(message, Report) or is_in_order(message.rows):
        return message
    return replace(message, rows=message.rows.in_order())
