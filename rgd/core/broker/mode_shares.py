"""Shares of a broker that does not use the usage map, from quotas and the number of brokers.

Law: the shares of all brokers that may exist sum to at most the quota. Mode `OPEN` is the
exception: it limits blocked groups only.
"""

from collections.abc import Callable

import numpy as np

from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.columns import Ints, rates, rates_of
from rgd.core.policies.model import Rates
from rgd.core.shares.apportion import floors
from rgd.core.shares.columns import NO_RATE


class ModeShares:
    """This broker's share of quotas; columns are in Milli per second, `NO_RATE` for unlimited."""

    def __init__(self, settings: BrokerSettings, known_brokers: Callable[[], int]) -> None:
        self._settings = settings
        self._known_brokers = known_brokers

    def least(self, quota: Rates) -> Rates:
        """The floor, which every broker may have at the same time."""
        return rates_of(self.shares(Mode.STARTING, rates([quota]))[0].tolist())

    def shares(self, mode: Mode, quota: Ints) -> Ints:
        """[groups, 2] the shares of [groups, 2] quotas in a mode that does not use the map."""
        if mode is Mode.OPEN:
            # A blocked group keeps its quota of 0; all others are unlimited.
            is_blocked = (quota == 0).all(axis=1)
            return np.where(is_blocked[:, None], quota, NO_RATE)
        divided = floors(quota, self._settings.floor_ppm) if mode.is_on_floor else quota
        # Rounded down, which is the least that any of them has.
        return np.where(quota == NO_RATE, NO_RATE, divided // self._known_brokers())
