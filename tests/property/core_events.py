"""What may happen to one broker: strategies for test_core_fuzz.py, with the largest legal numbers."""

from typing import Final

from hypothesis import strategies as st

from rgd.core.backlog.settings import BacklogSettings
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import (
    ALL_ROWS,
    Ask,
    Claim,
    Goodbye,
    Hello,
    Message,
    Report,
    Sender,
    Span,
)
from rgd.core.exchange.rows import UsageRow
from rgd.core.policies.model import (
    Attachments,
    BacklogAction,
    BacklogQuota,
    Group,
    Limit,
    Limits,
    LocalLimit,
    OnIsolation,
    OnUnknown,
    Rate,
    Rates,
    SharePolicyName,
    TopicSplit,
)
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_MS, NS_PER_S, QUOTA_MAX, Kind, Pair
from tests.support.columns import advertised_hash

ME: Final = Sender("b1", 5)
#: Peers, a daemon under our name on either side of our incarnation, and who writes in our name.
SPEAKERS: Final = [
    *[Sender("b0", 1), Sender("b0", 2), Sender("b2", 1), Sender("b3", 7)],
    *[Sender("b1", 4), Sender("b1", 9), ME],
]
GROUPS: Final = ["gold", "silver", "lead"]
TENANT: Final = "acme"
NAMESPACES: Final = ["acme/orders", "acme/bills"]
TOPICS: Final = [f"persistent://{name}/{topic}" for name in NAMESPACES for topic in ("eu", "us")]

BACKLOG_READ_MS: Final = 1_800_000_000_000

#: Every source of policies makes hashes of 63 bits, and records take no others.
POLICIES_HASH_MAX: Final = COUNT_MAX

NIGHTLY_TIMEOUT_S: Final = 1200

#: Most wakes within one moment: slices of a round, of shares, of policies and of topics.
WAKES_MAX: Final = 60

amounts = st.sampled_from(
    [0, 1, 2, 7, 1000, 10**9, 10**15, QUOTA_MAX, 1 << 53, (1 << 62) - 1, COUNT_MAX]
)
#: Times in ns: nothing, less than a slot, slots, rounds, a night, years.
spans = st.sampled_from(
    [0, 1, 10**6, 37 * 10**6, 10**8, 250 * 10**6, 10**9, 3 * 10**9, 10**11, 10**14, 10**17]
)
rates: st.SearchStrategy[Rate] = st.sampled_from(
    [None, 1, 999, MILLI, 50 * MILLI, 10**9 * MILLI, 10**15 * MILLI, QUOTA_MAX * MILLI]
)
pairs_of_rates = st.builds(Rates, rates, rates)
groups = st.builds(
    lambda name, publish, dispatch, blocked, shadow, policy, split: Group(
        name, Limit(publish, dispatch), blocked, shadow, policy=policy, topic_split=split
    ),
    st.sampled_from(GROUPS),
    pairs_of_rates,
    pairs_of_rates,
    st.sampled_from([False, False, False, True]),
    st.sampled_from([False, False, True]),
    st.sampled_from([None, None, *SharePolicyName]),
    st.sampled_from([None, *TopicSplit]),
)
local_limits = st.builds(LocalLimit, st.none() | pairs_of_rates, st.none() | pairs_of_rates)
snapshots = st.builds(
    lambda some, tenant, namespaces, topics, broker, of_topics, of_subscriptions: PolicySnapshot(
        {group.name: group for group in some},
        Attachments(tenant, namespaces, topics),
        Limits(broker, of_topics, of_subscriptions),
    ),
    st.lists(groups, max_size=3, unique_by=lambda one: one.name),
    st.dictionaries(st.just(TENANT), st.sampled_from(GROUPS), max_size=1),
    st.dictionaries(st.sampled_from(NAMESPACES), st.sampled_from(GROUPS), max_size=2),
    st.dictionaries(st.sampled_from(TOPICS), st.sampled_from(GROUPS), max_size=2),
    local_limits,
    st.dictionaries(st.sampled_from(TOPICS), local_limits, max_size=2),
    st.dictionaries(st.tuples(st.sampled_from(TOPICS), st.just("sub")), local_limits, max_size=1),
)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Any legal question."""
    group = draw(st.none() | st.sampled_from(GROUPS))
    topic = draw(st.none() | st.sampled_from(TOPICS))
    namespace = None
    if group is None:
        chosen = draw(st.sampled_from(NAMESPACES))
        namespace = chosen if topic is None else topic.split("//")[1].rpartition("/")[0]
    return Request(
        kind=draw(st.sampled_from(Kind)),
        messages=draw(amounts),
        bytes=draw(amounts),
        group=group,
        namespace=namespace,
        topic=topic,
        subscription=draw(st.sampled_from([None, "sub"])) if topic else None,
        partial=draw(st.booleans()),
        attempt=draw(st.sampled_from([0, 1, 1, 2, COUNT_MAX])),
        held=Pair(draw(amounts), draw(amounts)) if draw(st.booleans()) else Pair(),
    )


rows = st.builds(
    UsageRow,
    st.sampled_from([*GROUPS, "unheard-of", "invented"]),
    st.sampled_from(Kind),
    amounts,
    st.builds(Pair, amounts, amounts),
    st.builds(Pair, amounts, amounts),
)
reports = st.builds(
    lambda sender, sequence, told, is_whole, weight, members, part, name: Report(
        sender,
        sequence,
        NS_PER_S,
        UsageColumns.of(*told),
        part[0],
        advertised_hash(row for row in told if not row.is_idle) if is_whole else 7,
        weight,
        members=members,
        span=part[1],
        more=part[2],
        claim=name[0],
        rival=name[1],
        policies_hash=name[2],
    ),
    st.sampled_from(SPEAKERS),
    st.sampled_from([1, 2, 3, 4, 5, 1000, COUNT_MAX]),
    st.lists(rows, max_size=4, unique_by=lambda row: (row.group, row.kind)),
    st.booleans(),
    st.sampled_from([1, 1000, 1_000_000_000]),
    st.sampled_from([1, 3, COUNT_MAX]),
    st.sampled_from(
        [
            (False, ALL_ROWS, False),
            (False, ALL_ROWS, True),
            (True, ALL_ROWS, False),
            (True, Span(0, 1 << 63), True),
            (True, Span(1 << 63), False),
            (True, Span(5, 6), False),
        ]
    ),
    st.tuples(
        st.sampled_from(Claim),
        st.sampled_from([0, ME.incarnation, (1 << 64) - 1]),
        st.sampled_from([0, 1, POLICIES_HASH_MAX]),
    ),
)
messages: st.SearchStrategy[Message] = st.one_of(
    reports,
    st.builds(Hello, st.sampled_from(SPEAKERS)),
    st.builds(Goodbye, st.sampled_from(SPEAKERS)),
    st.builds(Ask, st.sampled_from(SPEAKERS), st.sampled_from(["b0", "b1"]), st.booleans()),
)
#: Stock brokers, an rgd broker among them, and one with the name of a peer.
STOCK_NAMES: Final = ["pulsar://s1:6650", "pulsar://s2:6650", "rgd://b0", "b2"]

_stock_pairs = st.none() | st.builds(Pair, amounts, amounts)
stock_reports = st.builds(
    StockReport,
    st.sampled_from(STOCK_NAMES),
    st.lists(
        st.builds(GroupUsage, st.sampled_from([*GROUPS, "tin"]), _stock_pairs, _stock_pairs),
        max_size=5,
    ).map(tuple),
)

settings_of_brokers = st.builds(
    BrokerSettings,
    st.just(ME),
    weight=st.sampled_from([1, 1000, 1_000_000_000]),
    round_ns=st.sampled_from([50 * NS_PER_MS, NS_PER_S, 60 * NS_PER_S]),
    min_interval_ns=st.sampled_from([NS_PER_MS, 100 * NS_PER_MS]),
    on_isolation=st.sampled_from(OnIsolation),
    expected_brokers=st.sampled_from([1, 3, 100_000]),
    stored_peers=st.sampled_from([frozenset[str](), frozenset({"b0"})]),
    floor_ppm=st.sampled_from([0, 10_000, 1_000_000]),
    burst_ns=st.sampled_from([NS_PER_MS, 250 * NS_PER_MS, 60 * NS_PER_S]),
    request_max_ms=st.sampled_from([1, 10_000, 86_400_000]),
    policy=st.sampled_from(SharePolicyName),
    topic_split=st.sampled_from(TopicSplit),
    on_unknown=st.sampled_from(OnUnknown),
    stock_period_ns=st.sampled_from([0, NS_PER_S, 60 * NS_PER_S]),
    backlog=st.builds(
        BacklogSettings,
        is_checked=st.booleans(),
        is_precise=st.booleans(),
        default=st.builds(
            BacklogQuota,
            st.sampled_from([-1, 1, 1000]),
            st.sampled_from([-1, 60]),
            st.sampled_from(BacklogAction),
        ),
        stale_ns=st.sampled_from([180 * NS_PER_S, 1 << 62]),
    ),
)
