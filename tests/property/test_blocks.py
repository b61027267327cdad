"""Rows that are joined as they come are those that a join of all blocks gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.exchange.blocks import ShareBlocks
from rgd.core.exchange.columns import REFUSED_BY, ShareColumns, UsageColumns

#: Each block: how many rows, and whether levels refused something.
sizes = st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=6)


def block(dice: np.random.Generator, count: int, *, has_levels: bool) -> ShareColumns:
    def numbers(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return dice.integers(1, 1 << 40, (count, *shape))

    return ShareColumns(
        usage=UsageColumns(
            groups=tuple(f"g{number}" for number in numbers().tolist()),
            kinds=dice.integers(0, 2, count).astype(np.uint8),
            topics=numbers(),
            admitted=numbers(2),
            wanted=numbers(2),
        ),
        share=numbers(2),
        quota=numbers(2),
        policies=dice.integers(0, 2, count).astype(np.uint8),
        refused=numbers(2),
        sent=dice.random(count) < 0.5,
        admitted_total=numbers(2),
        wanted_total=numbers(2),
        refused_by=numbers(len(REFUSED_BY), 2)[: count if has_levels else 0],
    )


@given(sizes, st.integers(0, 3))
def test_blocks_are_joined_as_they_come(sizes: list[tuple[int, bool]], spare: int) -> None:
    dice = np.random.default_rng(len(sizes))
    blocks = [block(dice, count, has_levels=has_levels) for count, has_levels in sizes]
    joined = ShareBlocks(sum(map(len, blocks)) + spare)
    for rows in blocks:
        joined.add(rows)
    assert joined.join() == ShareColumns.join(blocks)
