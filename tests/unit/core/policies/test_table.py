"""Tables: what was given out stays, and what changed is found.

Not covered: how long it takes, and the policy snapshots that are made of tables (test_records.py).
"""

from rgd.core.policies.table import Table, changed_keys


def changed(before: Table[int, str], after: Table[int, str], count_max: int) -> list[int] | None:
    keys = changed_keys(before, after, count_max)
    return None if keys is None else sorted(keys)


def test_small_mappings_are_compared_and_large_ones_are_not() -> None:
    before, after = (
        {"same": "a", "other": "a", "gone": "a"},
        {"same": "a", "other": "b", "new": "a"},
    )
    assert sorted(changed_keys(before, after, 6) or ()) == ["gone", "new", "other"]
    assert changed_keys(before, after, 5) is None
    assert changed_keys(before, before, 0) == ()
