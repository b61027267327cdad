"""A policies table in which strangers write: no record ends a daemon, and all daemons make the same of it.

Not covered: how records look in a topic of a broker (tests/contract/exchange).
"""

import asyncio
import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from rgd.app.policies.table import TablePolicies
from rgd.core.policies.records import REVISION_MAX, PolicyRecord, Value
from rgd.wire.policies import encode_policy
from tests.support.memory_bus import MemoryBus
from tests.support.policy_tables import GOLD, following, gold, table, until

#: Keys that policies have, and keys that look like it.
KEYS = [GOLD, "tenant:acme", "limit:broker", "limit:subscription:x", "group:", "backlog:", "rgd"]
#: Numbers at the edges of what JSON, protobuf and int64 can say.
EDGES = [-1, 0, 1, 2, 3, REVISION_MAX - 1, REVISION_MAX, REVISION_MAX + 1, 2**63 - 1, 2**63, 10**40]
VALUES: list[object] = [
    None,
    "gold",
    {},
    {"publish": {"messages": 1}},
    {"blocked": True},
    [],
    1e300,
]

Changes = list[tuple[str, bytes]]


@st.composite
def shaped(draw: st.DrawFn) -> bytes:
    """What has the fields of a record, with something in them."""
    record: dict[str, object] = {
        "version": 1,
        "revision": draw(st.sampled_from(EDGES)),
        "writer": draw(st.sampled_from(["a", "late", "", "\x00", "x" * 600])),
        "value": draw(st.sampled_from(VALUES)),
    }
    for name in draw(st.lists(st.sampled_from([*record, "more"]), max_size=1)):
        record[name] = draw(st.sampled_from(VALUES))
    return json.dumps(record).encode()


def changes(bodies: st.SearchStrategy[bytes]) -> st.SearchStrategy[Changes]:
    # Most meet at one key.
    keys = st.one_of(st.just(GOLD), st.sampled_from(KEYS), st.text(min_size=1, max_size=20))
    return st.lists(st.tuples(keys, bodies), max_size=8)


RUBBISH = st.one_of(st.binary(max_size=40), st.just(b"[" * 10_000))
ANYTHING = changes(st.one_of(shaped(), shaped(), RUBBISH))
#: Without records of a later version, which are left alone where they hide another one.
COMPACTABLE = changes(shaped().filter(lambda body: json.loads(body)["version"] == 1))


async def write_raw(bus: MemoryBus, *written: tuple[str, bytes]) -> None:
    for each in written:
        bus.records.append(each)
        for inbox in bus.change_inboxes:
            inbox.put(each)


def agree(one: TablePolicies, other: TablePolicies) -> bool:
    is_same = one.snapshot() == other.snapshot() and one.hash == other.hash
    return is_same and not one.figures().misplaced and not other.figures().misplaced


async def survive(before: Changes, after: Changes, *, is_compacted: bool) -> None:
    bus = MemoryBus()
    await write_raw(bus, *before)
    early, late = table(bus, "early"), table(bus, "late")
    async with following(early):
        await write_raw(bus, *after)
        # Whatever was written, policies can be changed on top of it.
        await early.change(GOLD, lambda _known: gold(7000))
        await until(lambda: not early.figures().misplaced)
        if is_compacted:
            bus.compact()
        async with following(late):
            await late.change("tenant:acme", lambda _known: "gold")
            await until(lambda: agree(early, late))
            assert early.snapshot().groups["gold"] == gold(7000)
            assert early.snapshot().attach.tenants["acme"] == "gold"
    # What is repaired is repaired once by each: nobody writes for ever.
    assert len(bus.records) <= 3 * (len(before) + len(after)) + 6


@settings(max_examples=30)
@given(before=ANYTHING, after=ANYTHING)
def test_whatever_is_in_a_topic_two_daemons_survive_it_and_agree(
    before: Changes, after: Changes
) -> None:
    asyncio.run(survive(before, after, is_compacted=False))


@settings(max_examples=30)
@given(before=COMPACTABLE, after=COMPACTABLE)
def test_who_reads_only_what_a_compaction_left_agrees_too(before: Changes, after: Changes) -> None:
    asyncio.run(survive(before, after, is_compacted=True))


def raw(revision: int, messages: int = 1) -> bytes:
    body = {"publish": {"messages": messages}}
    return json.dumps(
        {"version": 1, "revision": revision, "writer": "stranger", "value": body}
    ).encode()


async def test_a_revision_out_of_reach_and_then_a_low_one_end_nobody() -> None:
    bus = MemoryBus()
    await write_raw(bus, (GOLD, raw(2**63 - 1)), (GOLD, raw(1)))
    policies = table(bus, "broker-1")
    async with following(policies):
        await write_raw(bus, (GOLD, raw(2**63 - 1)), (GOLD, raw(1)))
        await policies.change("tenant:acme", lambda _known: "gold")
        # As if the one out of reach had never been there.
        assert policies.snapshot().groups == {"gold": gold(1000)}
        assert policies.figures().refused == 2
    assert table(bus, "broker-2").figures().refused == 0


async def test_a_refused_record_that_hides_a_policy_does_not_stay_the_last() -> None:
    bus = MemoryBus()
    policies, late = table(bus, "broker-1"), table(bus, "late")
    async with following(policies):
        await policies.change(GOLD, lambda _known: gold(1000))
        await write_raw(bus, (GOLD, raw(2**63 - 1, 9)))
        await until(lambda: bus.table[GOLD] != raw(2**63 - 1, 9))
        bus.compact()
        async with following(late):
            assert late.snapshot().groups == {"gold": gold(1000)}


async def test_the_highest_revision_that_can_be_forged_locks_nobody_out() -> None:
    bus = MemoryBus()
    one, other = table(bus, "one"), table(bus, "other")
    async with following(one, other):
        await write_raw(bus, (GOLD, raw(REVISION_MAX, 9)))
        for number in (1000, 2000, 3000):
            await one.change(GOLD, lambda _known, number=number: gold(number))  # type: ignore[misc]
            await other.change(GOLD, lambda known: replace(known, blocked=True))  # type: ignore[type-var]
        blocked = replace(gold(3000), blocked=True)
        await until(lambda: one.snapshot().groups == other.snapshot().groups == {"gold": blocked})
        bus.compact()
        late = table(bus, "late")
        async with following(late):
            assert late.snapshot().groups == {"gold": blocked}


@given(values=st.permutations([1000, 2000, None, 1000]))
def test_the_hash_is_of_what_is_in_force_and_not_of_how_it_came_to_be(
    values: list[int | None],
) -> None:
    asyncio.run(same_hash(values))


async def same_hash(values: list[int | None]) -> None:
    def of(value: int | None) -> Value:
        return None if value is None else gold(value)

    bus, other = MemoryBus(), MemoryBus()
    history = [PolicyRecord(GOLD, n, "a", of(value)) for n, value in enumerate(values, 1)]
    await write_raw(bus, *((GOLD, encode_policy(record)) for record in history))
    last = PolicyRecord(GOLD, 1, "b", of(values[-1]))
    await write_raw(other, (GOLD, encode_policy(last)))
    one, two, empty = table(bus, "one"), table(other, "two"), table(MemoryBus(), "three")
    async with following(one, two, empty):
        assert one.hash == two.hash
        assert (one.hash == empty.hash) is (values[-1] is None)
        assert empty.hash != 0
