"""Policy records of several writers: any order, any doubling, the same snapshot.

Not covered: two records of one key, revision and writer that differ: a writer numbers its own.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.policies.index import PolicyIndex
from rgd.core.policies.model import Group, Limit, LocalLimit, Rates
from rgd.core.policies.records import (
    PolicyRecord,
    PolicyRecords,
    Value,
    subscription_name,
    subscription_of,
)

TOPICS = ["persistent://acme/orders/eu", "persistent://acme/orders/eu|x%7C"]
KEYS = [
    "group:gold",
    "group:silver",
    "tenant:acme",
    "namespace:acme/orders",
    *(f"topic:{topic}" for topic in TOPICS),
    "limit:broker",
    *(f"limit:topic:{topic}" for topic in TOPICS),
    *(f"limit:subscription:{subscription_name(topic, 's')}" for topic in TOPICS),
]


def value_of(key: str, revision: int, writer: str) -> Value:
    """What this writer decided then; some of it is that there is nothing."""
    units = revision * 10 + len(writer)
    if units % 4 == 0:
        return None
    if key.startswith("group:"):
        return Group(key.removeprefix("group:"), Limit(Rates(units)))
    return LocalLimit(Rates(units)) if key.startswith("limit:") else f"g{units}"


@st.composite
def records(draw: st.DrawFn) -> PolicyRecord:
    key = draw(st.sampled_from(KEYS))
    revision, writer = draw(st.integers(1, 4)), draw(st.sampled_from(["b", "bb", "bbb"]))
    return PolicyRecord(key, revision, writer, value_of(key, revision, writer))


def table(arrived: list[PolicyRecord]) -> PolicyRecords:
    made = PolicyRecords()
    for record in arrived:
        made.apply(record)
    return made


@given(st.lists(records(), max_size=30), st.data())
def test_any_order_and_any_doubling_make_the_same_book(
    written: list[PolicyRecord], data: st.DataObject
) -> None:
    again = data.draw(st.permutations(written))
    doubled = [*again, *data.draw(st.permutations(again))]
    snapshots = [table(records).snapshot() for records in (written, again, doubled)]
    assert snapshots[0] == snapshots[1] == snapshots[2]
    assert (
        names_of(snapshots[0].index) == names_of(snapshots[1].index) == names_of(snapshots[2].index)
    )


@given(st.lists(records(), max_size=30))
def test_what_wins_is_the_highest_of_what_arrived(written: list[PolicyRecord]) -> None:
    made = table(written)
    for key in {record.key for record in written}:
        mine = [record for record in written if record.key == key]
        highest = max(mine, key=lambda record: (record.revision, record.writer))
        # Only a record above it is taken in.
        assert not made.apply(highest)
        assert made.next(key, None, "a").revision == highest.revision + 1
        assert table([highest]).snapshot() == table(mine).snapshot()


def names_of(index: PolicyIndex) -> list[dict[str, set[str]]]:
    """What an index says, whatever it counts."""
    return [{owner: set(names) for owner, names in owners.items()} for owners in index]


def namespaces_of(made: PolicyRecords) -> set[str]:
    """The namespaces of all records but the tenant's and the groups'."""
    others = ("group:", "tenant:", "limit:broker")
    is_any = any(not record.key.startswith(others) for record in made.all())
    return {"acme/orders"} if is_any else set()


@given(st.lists(records(), max_size=30))
def test_the_index_says_what_a_walk_through_the_book_says(written: list[PolicyRecord]) -> None:
    made = PolicyRecords()
    indexed = []
    for record in written:
        made.apply(record)
        snapshot = made.snapshot()
        indexed.append((snapshot.index, names_of(snapshot.index)))
        # The same policies, with nothing kept of them: the index is made from the whole. A namespace
        # exists once named, and that of a deleted policy shows in the records alone.
        whole = names_of(replace(snapshot, named=snapshot.namespaces()).index)
        assert indexed[-1][1] == whole
        assert namespaces_of(made) == snapshot.namespaces()
        assert snapshot.namespaces() == frozenset().union(*indexed[-1][1][3].values())
    # What was given out stays as it was.
    assert all(names_of(index) == names for index, names in indexed)


hard = st.text("eu|%7C25c", max_size=10)


@given(topic=hard, name=hard)
def test_a_subscription_comes_back_from_its_key(topic: str, name: str) -> None:
    assert subscription_of(subscription_name(topic, name)) == (topic, name)


@given(one=st.tuples(hard, hard), other=st.tuples(hard, hard))
def test_two_subscriptions_have_two_keys(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (subscription_name(*one) == subscription_name(*other)) == (one == other)
