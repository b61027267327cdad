"""Shares of a broker that does not compute with the usage map: from quotas and the number of brokers alone.

Law: whatever these are, the shares of all brokers that may exist sum to at most the quota, except in
mode `OPEN`, in which nothing but a blocked group is limited.
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
    """This broker's share of quotas; rates in columns are Milli per second, `NO_RATE` where unlimited."""

    def __init__(self, settings: BrokerSettings, known_brokers: Callable[[], int]) -> None:
        self._settings = settings
        self._known_brokers = known_brokers

    def least(self, quota: Rates) -> Rates:
        """What every broker may have at once: the floor."""
        return Rates(self._floor(quota.messages), self._floor(quota.bytes))

    def shares(self, mode: Mode, quota: Ints) -> Ints:
        """[groups, 2] the shares of [groups, 2] quotas in a mode that does not believe the map."""
        if mode is Mode.OPEN:
            # A block needs no share; everything else is let through.
            is_blocked = (quota == 0).all(axis=1)
            return np.where(is_blocked[:, None], quota, NO_RATE)
        part = self._floor if mode.is_on_floor else self._equal
        # Many groups have the same quota.
        rates, at = np.unique(quota, return_inverse=True)
        shares = [NO_RATE if rate == NO_RATE else part(rate) for rate in rates.tolist()]
        found: Ints = np.array(shares, np.int64)[at].reshape(quota.shape)
        return found

    def lowered(self, mode: Mode, share: Ints, was: Ints, quota: Ints) -> Ints:
        """[2] what is left of a share when its quota changes, until it is recomputed.

        All brokers do this alike, so that their shares stay within the new quota.
        """
        pairs = zip(share.tolist(), was.tolist(), quota.tolist(), strict=True)
        return np.array([self._lowered(mode, *each) for each in pairs], np.int64)

    def _lowered(self, mode: Mode, share: int, was: int, quota: int) -> Rate:
        is_open = mode is Mode.OPEN and share == NO_RATE and quota != 0
        if quota == NO_RATE or is_open:
            return share
        if NO_RATE in (share, was):
            return self._equal(quota)
        # Python's integers: the product may have more than 64 bits.
        return share * quota // was if quota < was else share

    def _floor(self, quota: Rate) -> Rate:
        if quota is None:
            return None
        return least_floor(quota, self._known_brokers(), self._settings.floor_ppm)

    def _equal(self, quota: Rate) -> Rate:
        return None if quota is None else quota // self._known_brokers()
