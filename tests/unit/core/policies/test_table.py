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


def test_a_table_is_what_was_written() -> None:
    table = writer_of(3 * PARTS).table()
    assert table == {key: str(key) for key in range(3 * PARTS)}
    assert (len(table), len(list(table)), len(list(table.items()))) == (3 * PARTS,) * 3
    assert (table[PARTS + 1], table.get(PARTS), 7 in table) == (str(PARTS + 1), str(PARTS), True)
    assert (table.get(-1), table.get(-1, "x"), -1 in table) == (None, "x", False)


def test_a_table_that_was_given_out_stays_as_it_is() -> None:
    writer = writer_of(2)
    first = writer.table()
    writer.put(0, "other")
    writer.put(PARTS, "new")
    writer.remove(1)
    writer.remove(5)
    second = writer.table()
    writer.put(0, "third")
    assert first == {0: "0", 1: "1"}
    assert second == {0: "other", PARTS: "new"}
    assert len(second) == 2


def test_nothing_written_is_the_same_table() -> None:
    writer = writer_of(2)
    first = writer.table()
    writer.remove(5)
    assert writer.table() is first


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
