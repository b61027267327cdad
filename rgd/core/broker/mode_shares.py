"""Shares of a broker that does not use the usage map, from quotas and the number of brokers.

Law: the shares of all brokers that may exist sum to at most the quota. Mode `OPEN` is the
exception: it limits blocked groups only.
"""

from collections.abc import Callable

import numpy as np

from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.columns import Ints
from rgd.core.policies.model import Rate, Rates
from rgd.core.shares.apportion import least_floor
from rgd.core.shares.columns import NO_RATE


class ModeShares:
    """This broker's share of quotas; columns are in Milli per second, `NO_RATE` for unlimited."""

    def __init__(self, settings: BrokerSettings, known_brokers: Callable[[], int]) -> None:
        self._settings = settings
        self._known_brokers = known_brokers

    def least(self, quota: Rates) -> Rates:
        """The floor, which every broker may have at the same time."""
        known = self._known_brokers()
        return Rates(self._floor(quota.messages, known), self._floor(quota.bytes, known))

    def shares(self, mode: Mode, quota: Ints) -> Ints:
        """[groups, 2] the shares of [groups, 2] quotas in a mode that does not use the map."""
        if mode is Mode.OPEN:
            # A blocked group keeps its quota of 0; all others are unlimited.
            is_blocked = (quota == 0).all(axis=1)
            return np.where(is_blocked[:, None], quota, NO_RATE)
        part = self._floor if mode.is_on_floor else _equal
        # Counted once, because it takes a pass over all names.
        known = self._known_brokers()
        # Each distinct quota is computed once, because many groups have the same one.
        rates, at = np.unique(quota, return_inverse=True)
        shares = [NO_RATE if rate == NO_RATE else part(rate, known) for rate in rates.tolist()]
        found: Ints = np.array(shares, np.int64)[at].reshape(quota.shape)
        return found

    def _floor(self, quota: Rate, known: int) -> Rate:
        return None if quota is None else least_floor(quota, known, self._settings.floor_ppm)


def _equal(quota: Rate, known: int) -> Rate:
    return None if quota is None else quota // known
