"""A report as the core cuts it fits one message of any exchange, whatever its numbers and names are."""

import numpy as np
import pytest

from rgd.core.bounds import BOUNDS
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.precision import RATE_MAX, rounded
from rgd.core.exchange.report_parts import (
    ROW_BYTES_MAX,
    parts_of_rows,
)
from rgd.core.policies.names import NAME_MAX
from rgd.core.units import COUNT_MAX
from rgd.ports.exchange import PAYLOAD_BYTES_MAX
from rgd.wire import codec, compression
from rgd.wire.codec import MESSAGE_MAX, decode, encode
from rgd.wire.name_dictionary import NameDecoders, NameEncoder

#: The longest name of a broker, in letters of four bytes.
ME = Sender("\N{GOTHIC LETTER AHSA}" * NAME_MAX, (1 << 64) - 1)


def rows_of(name_length: int, unmet: int) -> UsageColumns:
    """A little more than one part, with numbers of as many bytes as there are."""
    count = BOUNDS.exchange.part_bytes_max // (ROW_BYTES_MAX + name_length) + 5
    admitted = np.full((count, 2), 0 if unmet else RATE_MAX, np.int64)
    return UsageColumns(
        groups=tuple(f"{number:0{name_length}}" for number in range(count)),
        kinds=np.zeros(count, np.uint8),
        topics=np.full(count, COUNT_MAX, np.int64),
        admitted=admitted,
        wanted=admitted + unmet,
    )


def test_a_message_is_no_larger_than_an_exchange_takes() -> None:
    assert MESSAGE_MAX == PAYLOAD_BYTES_MAX


@pytest.mark.parametrize("unmet", [0, RATE_MAX])
@pytest.mark.parametrize("name_length", [5, 80, NAME_MAX])
def test_the_largest_numbers_and_names_fit_a_part(
    monkeypatch: pytest.MonkeyPatch, name_length: int, unmet: int
) -> None:
    # As if nothing could be compressed.
    monkeypatch.setattr(codec, "compressed", lambda _body, **_options: None)
    rows = rows_of(name_length, unmet)
    parts = parts_of_rows(rows)
    assert len(parts) == 2
    numbering, name_decoders = NameEncoder(), NameDecoders()
    # The last number that there is takes the most bytes.
    numbering._names = ["x"] * 200_000  # noqa: SLF001 -- to number so many by reports takes long
    numbering._is_said = np.zeros(200_000, np.bool_)  # noqa: SLF001 -- the same
    for sequence, part in enumerate(parts, 1):
        data = encode(Report(ME, sequence, 1_000_000_007, part), numbering)
        assert len(data) <= PAYLOAD_BYTES_MAX
        heard = decode(data, name_decoders)
        assert isinstance(heard, Report)
        assert len(heard.rows) == len(part)
    assert len(encode(Report(ME, 3, 1_000_000_007, parts[0]))) <= PAYLOAD_BYTES_MAX


def test_reports_of_different_groups_stay_far_below_the_ratio() -> None:
    dice = np.random.default_rng(82)
    amounts = rounded(np.floor(20 * dice.pareto(1.2, (5_000, 2)) + 20).astype(np.int64) * 1000)
    rows = UsageColumns(
        groups=tuple(f"tenant-{number // 10:04}-group-{number % 10}" for number in range(5_000)),
        kinds=np.zeros(5_000, np.uint8),
        topics=dice.integers(1, 20, 5_000),
        admitted=amounts,
        wanted=amounts,
    )
    data = encode(Report(ME, 1, 1_000_000_007, rows), NameEncoder())
    assert (
        compression.plain_size(data[2:], codec.MESSAGE_MAX) * 3 < len(data) * compression.RATIO_MAX
    )
