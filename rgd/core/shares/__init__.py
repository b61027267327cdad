"""Share policies: from a quota and the rows of the usage map to one share a row.

`columns` is max-min over wanted rates (the default) for many groups at once, messages and bytes
as one decision: `columns_single` fills one dimension, `columns_dual` two, over the sums of
`columns_sums`. `pip82` holds the three that PIP-82 describes; `apportion` places remainders;
`registry` shares one group by a policy's name. All are pure functions that hand out fixed point.
"""
