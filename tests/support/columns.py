"""Columns of single rows of the usage log, rounds of equal rows, and the hash of single rows of a report."""

from collections.abc import Iterable, Sequence

import numpy as np

from rgd.core.exchange.columns import (
    NO_SHARES,
    REFUSED_BY,
    Ints,
    ShareColumns,
    UsageColumns,
    pairs,
    policy_code,
    rates,
)
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.exchange.rows_hash import HASH_MASK, row_hashes
from rgd.core.policies.model import GroupKey


def shares_of(*rows: ShareRow) -> ShareColumns:
    """Columns of single rows."""
    return ShareColumns(
        usage=UsageColumns.of(*(row.usage for row in rows)),
        share=rates([row.share for row in rows]),
        quota=rates([row.quota for row in rows]),
        policies=np.array([policy_code(row.policy) for row in rows], np.uint8),
        refused=pairs([row.refused for row in rows]),
        sent=np.array([row.sent for row in rows], np.bool_),
        admitted_total=pairs([row.admitted_total for row in rows]),
        wanted_total=pairs([row.wanted_total for row in rows]),
        refused_by=_levels_of(rows),
    )


def round_of(sequence: int, groups: Sequence[str], amounts: Ints, kinds: int = 1) -> RoundRecord:
    """A round of which all is these amounts, a pair for each kind of each group, but twice as much was wanted."""
    wanted = 2 * amounts
    usage = UsageColumns(
        groups=tuple(name for name in groups for _ in range(kinds)),
        kinds=np.tile(np.arange(kinds, dtype=np.uint8), len(groups)),
        topics=amounts[:, 0],
        admitted=amounts,
        wanted=wanted,
    )
    rows = ShareColumns(
        usage=usage,
        share=amounts,
        quota=amounts,
        policies=np.zeros(len(amounts), np.uint8),
        refused=amounts,
        sent=np.ones(len(amounts), np.bool_),
        admitted_total=amounts,
        wanted_total=wanted,
    )
    return RoundRecord(Sender("b1", 1), sequence, 1_000_000_007, rows)


def advertised_hash(rows: Iterable[UsageRow]) -> int:
    """The hash of rows that a report of all of them would carry."""
    columns = UsageColumns.of(*rows)
    index = GroupIndex()
    slots = [index.slot(GroupKey(row.group, row.kind)) for row in columns]
    keys = index.hashes[np.array(slots, np.int64)]
    rates_of_rows = np.concatenate((columns.admitted.T, columns.wanted.T))
    return int(row_hashes(keys, columns.topics, rates_of_rows).sum()) & HASH_MASK


def _levels_of(rows: Sequence[ShareRow]) -> Ints:
    """[rows, REFUSED_BY, 2]; no rows if none has a breakdown by level."""
    if not any(row.refused_by for row in rows):
        return NO_SHARES.refused_by
    levels = np.zeros((len(rows), len(REFUSED_BY), 2), np.int64)
    for place, row in enumerate(rows):
        for level, pair in row.refused_by:
            levels[place, REFUSED_BY.index(level)] = pair
    return levels
