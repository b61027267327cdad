"""A report as the core cuts it fits one message of any exchange, whatever its numbers and names are."""

import numpy as np

from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.precision import rounded
from rgd.core.policies.names import NAME_MAX
from rgd.ports.exchange import PAYLOAD_BYTES_MAX
from rgd.wire import codec, compression
from rgd.wire.codec import MESSAGE_MAX, encode
from rgd.wire.name_dictionary import NameEncoder

#: The longest name of a broker, in letters of four bytes.
ME = Sender("\N{GOTHIC LETTER AHSA}" * NAME_MAX, (1 << 64) - 1)


def test_a_message_is_no_larger_than_an_exchange_takes() -> None:
    assert MESSAGE_MAX == PAYLOAD_BYTES_MAX


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
    body = compression.decompressed(data[2:], codec.MESSAGE_MAX)
    assert len(body) * 3 < len(data) * compression.RATIO_MAX
