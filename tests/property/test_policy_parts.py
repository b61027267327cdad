"""Whatever changes between two snapshots, the gate's policies decide as the plane's do."""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.gate.policy_parts import PART_ENTRIES, PolicyParts, parts_between
from rgd.core.policies.model import Attachments, Group, Limits, LocalLimit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.policies.table import TableWriter

LIMITED = LocalLimit(Rates(1_000))
NAMES = st.integers(0, 2 * PART_ENTRIES).map(str)
#: What changes: the table, a name, and whether it is there afterwards.
CHANGES = st.lists(st.tuples(st.integers(0, 8), NAMES, st.booleans()), max_size=20)


class Written:
    """Policies as a table of them is kept: each change makes another snapshot."""

    def __init__(self) -> None:
        self.writers: list[TableWriter[Any, Any]] = [TableWriter() for _ in range(9)]

    def change(self, table: int, name: str, *, is_there: bool) -> None:
        key, writer = ((name, "s") if table == 5 else name), self.writers[table]
        if not is_there:
            writer.remove(key)
        elif table == 0:
            writer.put(key, Group(name, shadow=True))
        else:
            writer.put(key, f"of {name}" if table < 4 else LIMITED)

    def snapshot(self, *, as_dicts: bool) -> PolicySnapshot:
        tables: list[Mapping[Any, Any]] = [writer.table() for writer in self.writers]
        groups, *others = map(dict, tables) if as_dicts else tables
        attach, limits = Attachments(*others[:3]), Limits(LIMITED, *others[3:])
        return PolicySnapshot(groups, attach, limits, named=())


@given(st.lists(st.tuples(CHANGES, st.booleans(), st.booleans(), st.booleans()), max_size=5))
def test_the_gate_has_what_the_plane_has(
    steps: list[tuple[list[tuple[int, str, bool]], bool, bool, bool]],
) -> None:
    written, gate, before = Written(), PolicyParts(), None
    for changes, adds_many, as_dicts, forgets in steps:
        for table, name, is_there in changes:
            written.change(table, name, is_there=is_there)
        for number in range(3 * PART_ENTRIES if adds_many else 0):
            written.change(0, f"many-{number}", is_there=True)
        after = written.snapshot(as_dicts=as_dicts)
        # As where another plane took over.
        before = None if forgets else before
        for part in parts_between(before, after):
            assert len(part.put) <= PART_ENTRIES
            gate.take(pickle.loads(pickle.dumps(part)))
        found = gate.snapshot(after.limits.broker)
        assert (found.groups, found.attach, found.limits) == (
            after.groups,
            after.attach,
            after.limits,
        )
        before = after


def test_what_was_sent_since_is_in_no_snapshot() -> None:
    gate = PolicyParts()
    first = PolicySnapshot({"gold": Group("gold")})
    for part in parts_between(None, first):
        gate.take(part)
    found = gate.snapshot(first.limits.broker)
    for part in parts_between(first, replace(first, groups={"gold": Group("gold", shadow=True)})):
        gate.take(part)
    assert found.groups["gold"] == Group("gold")
