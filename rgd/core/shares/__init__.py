"""Share policies: from a quota and the rows of the usage map to one share for each row.

`columns` is max-min over wanted rates (the default) for many groups at once, with messages and
bytes in one decision. `columns_filling` fills one dimension or both, over the sums of
`columns_sums`. `pip82` has the three policies that PIP-82 describes. `apportion` distributes
remainders. `registry` shares one group by a policy's name. All are pure functions in fixed point.
"""
