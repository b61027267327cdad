"""Tables: what was given out stays, and what changed is found.

Not covered: how long it takes, and the policy snapshots that are made of tables (test_records.py).
"""

from rgd.core.policies.table import changed_keys


def test_small_mappings_are_compared_and_large_ones_are_not() -> None:
    before, after = (
        {"same": "a", "other": "a", "gone": "a"},
        {"same": "a", "other": "b", "new": "a"},
    )
    assert sorted(changed_keys(before, after, 6) or ()) == ["gone", "new", "other"]
    assert changed_keys(before, after, 5) is None
    assert changed_keys(before, before, 0) == ()
