"""Shares of a broker that does not use the usage map, of many groups at once.

What they are in each mode is in test_sharing.py.
"""

import numpy as np
import pytest

from rgd.core.broker.mode import Mode
from rgd.core.broker.mode_shares import ModeShares
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Sender


@pytest.mark.parametrize("mode", [Mode.STARTING, Mode.EQUAL])
def test_the_known_brokers_are_counted_once_for_all_quotas(mode: Mode) -> None:
    counts = []

    def known_brokers() -> int:
        counts.append(4)
        return 4

    settings = BrokerSettings(sender=Sender("broker-1", 1))
    quota = np.array([[1000 * at, 0] for at in range(1, 11)], np.int64)
    shares = ModeShares(settings, known_brokers).shares(mode, quota)
    if mode is Mode.EQUAL:
        assert shares.tolist() == [[250 * at, 0] for at in range(1, 11)]
    assert len(counts) == 1
