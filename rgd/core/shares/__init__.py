"""Share policies: from a quota and the rows of the usage map to one share a row.

`maxmin` is water-filling over wanted rates (the default); `pip82` holds the
three that PIP-82 describes; `apportion` places remainders; `registry` finds a
policy by its name. All are pure functions in fixed point.
"""
