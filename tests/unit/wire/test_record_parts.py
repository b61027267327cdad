"""Rounds that are too large for one entry: nothing is lost, and every part can be written.

Not covered: how parts come into the log (tests/unit/adapters/usagelog/test_rounds.py), how a report counts them
(tests/unit/analysis/test_continuity.py).
"""

from dataclasses import replace

import numpy as np
import pytest

from rgd.core.exchange.columns import NO_SHARES, ShareColumns, UsageColumns
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.policies.names import NAME_MAX
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import COUNT_MAX, QUOTA_MAX
from rgd.wire.errors import Malformed
from rgd.wire.frame import PAYLOAD_MAX
from rgd.wire.keys import ROWS_MAX
from rgd.wire.record_parts import PART_ROWS_BYTES, ROW_BYTES_MAX, parts_of
from tests.support.records import decoded, encoded

PERIOD_NS = 1_000_000_007


def shares(names: list[str], *, amount: int = 5, unmet: int = 0) -> ShareColumns:
    """A row of each kind for each group, all with the same amounts."""
    count = 2 * len(names)
    admitted = np.full((count, 2), amount, np.int64)
    wanted = admitted + unmet
    usage = UsageColumns(
        groups=tuple(name for name in names for _ in range(2)),
        kinds=np.tile(np.array([0, 1], np.uint8), len(names)),
        topics=admitted[:, 0],
        admitted=admitted,
        wanted=wanted,
    )
    return ShareColumns(
        usage=usage,
        share=np.full((count, 2), NO_RATE, np.int64),
        quota=np.full((count, 2), min(amount, QUOTA_MAX * 1000), np.int64),
        policies=np.zeros(count, np.uint8),
        refused=admitted,
        sent=np.ones(count, np.bool_),
        admitted_total=admitted,
        wanted_total=wanted,
    )


def record(rows: ShareColumns = NO_SHARES, peers: tuple[tuple[str, int], ...] = ()) -> RoundRecord:
    return RoundRecord(
        Sender("b" * NAME_MAX, 7),
        17,
        PERIOD_NS,
        rows,
        peers,
        isolated=True,
        weight=2500,
        lost=3,
        peer_incarnations=tuple(range(len(peers))),
    )


def read(value: RoundRecord) -> list[RoundRecord]:
    """The parts as they come out of a log."""
    return [decoded(encoded(part)) for part in parts_of(value)]


def joined(parts: list[RoundRecord]) -> RoundRecord:
    """The round that the parts are of."""
    rows = ShareColumns.join([part.rows for part in parts]).in_order()
    peers = tuple(peer for part in parts for peer in part.peers)
    incarnations = tuple(low for part in parts for low in part.peer_incarnations)
    return replace(
        parts[0], rows=rows, peers=peers, peer_incarnations=incarnations, part=1, parts=1
    )


def test_a_round_of_many_peers_with_long_names_is_divided_and_nothing_is_lost() -> None:
    names = sorted(
        "\N{GOTHIC LETTER AHSA}" * (NAME_MAX - 5) + f"{place:05}" for place in range(3_000)
    )
    value = record(shares(["gold", "silver"]), tuple((name, COUNT_MAX) for name in names))
    parts = read(value)
    assert len(parts) > 1
    assert joined(parts) == value


@pytest.mark.parametrize("unmet", [0, COUNT_MAX - 1])
@pytest.mark.parametrize("name_length", [5, NAME_MAX])
def test_the_largest_numbers_and_names_fit_every_part(unmet: int, name_length: int) -> None:
    row_bytes = ROW_BYTES_MAX + name_length
    names = sorted(f"{place:0{name_length}}" for place in range(PART_ROWS_BYTES // row_bytes))
    amount = COUNT_MAX - unmet
    value = record(shares(names, amount=amount, unmet=unmet))
    parts = list(parts_of(value))
    assert len(parts) > 1
    for part in parts:
        assert len(part.rows) <= ROWS_MAX
        assert len(encoded(part)) <= PAYLOAD_MAX * 4 // 5


@pytest.mark.parametrize(("part", "parts"), [(0, 1), (2, 1), (1, 0), (3, 2), (1, 1 << 40)])
def test_a_part_that_cannot_be_is_not_written(part: int, parts: int) -> None:
    with pytest.raises(Malformed):
        encoded(replace(record(), part=part, parts=parts))
