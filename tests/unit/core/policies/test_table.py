"""Tables: what was given out stays, and what changed is found.

Not covered: how long it takes, and the policy snapshots that are made of tables (test_records.py).
"""

from rgd.core.policies.table import PARTS, Table, TableWriter, changed_keys


def writer_of(count: int) -> TableWriter[int, str]:
    """So many keys, each in a part of its own as far as there are parts."""
    writer: TableWriter[int, str] = TableWriter()
    for key in range(count):
        writer.put(key, str(key))
    return writer


def changed(before: Table[int, str], after: Table[int, str], count_max: int) -> list[int] | None:
    keys = changed_keys(before, after, count_max)
    return None if keys is None else sorted(keys)


def test_what_changed_between_two_tables_is_found_among_many() -> None:
    writer = writer_of(4 * PARTS)
    first = writer.table()
    assert changed(first, first, 0) == []
    writer.put(1, "other")
    writer.put(4 * PARTS, "new")
    writer.remove(PARTS + 2)
    second = writer.table()
    assert changed(first, second, 3) == [1, PARTS + 2, 4 * PARTS]
    assert changed(second, first, 3) == [1, PARTS + 2, 4 * PARTS]
    # Too many to say, by the parts or by the keys in them.
    assert changed(first, second, 2) is None
    for key in range(1, 4 * PARTS, PARTS):
        writer.put(key, "all in one part")
    assert changed(second, writer.table(), 3) is None


def test_small_mappings_are_compared_and_large_ones_are_not() -> None:
    before, after = (
        {"same": "a", "other": "a", "gone": "a"},
        {"same": "a", "other": "b", "new": "a"},
    )
    assert sorted(changed_keys(before, after, 6) or ()) == ["gone", "new", "other"]
    assert changed_keys(before, after, 5) is None
    assert changed_keys(before, before, 0) == ()
