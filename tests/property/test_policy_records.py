"""Policy records of several writers: their snapshot and its index, however they came to be.

Not covered: which record of a key counts, which the ledger decides
(tests/unit/app/test_policies_table.py).
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

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
        made.put(record)
    return made


@given(st.lists(records(), max_size=30))
def test_the_snapshot_depends_on_the_last_record_of_each_key_only(
    written: list[PolicyRecord],
) -> None:
    made, last = table(written), {record.key: record for record in written}
    direct = table(list(last.values()))
    assert made.snapshot() == direct.snapshot()
    assert set(made.snapshot().existing) == set(direct.snapshot().existing)
    for key, record in last.items():
        assert made.next(key, None, "a").revision == record.revision + 1


def existing_of(made: PolicyRecords) -> set[str]:
    """The namespaces of all records but the tenant's and the groups', and their tenants."""
    others = ("group:", "tenant:", "limit:broker")
    is_any = any(not record.key.startswith(others) for record in made.all())
    return {"acme", "acme/orders"} if is_any else set()


@given(st.lists(records(), max_size=30))
def test_what_was_ever_named_exists(written: list[PolicyRecord]) -> None:
    made = PolicyRecords()
    given_out = []
    for record in written:
        made.put(record)
        snapshot = made.snapshot()
        given_out.append((snapshot.existing, set(snapshot.existing)))
        assert set(snapshot.existing) == existing_of(made)
        # That of a deleted policy shows in the records alone.
        assert set(replace(snapshot).existing) <= existing_of(made)
    # What was given out stays as it was.
    assert all(set(existing) == names for existing, names in given_out)


hard = st.text("eu|%7C25c", max_size=10)


@given(topic=hard, name=hard)
def test_a_subscription_comes_back_from_its_key(topic: str, name: str) -> None:
    assert subscription_of(subscription_name(topic, name)) == (topic, name)


@given(one=st.tuples(hard, hard), other=st.tuples(hard, hard))
def test_two_subscriptions_have_two_keys(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (subscription_name(*one) == subscription_name(*other)) == (one == other)
