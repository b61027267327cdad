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

    def lowered(self, mode: Mode, share: Ints, was: Ints, quota: Ints) -> Ints:
        """[2] the share of a group whose quota changed, until the share is recomputed.

        The share is lowered in proportion to the quota. All brokers do this alike, so their shares
        stay within the new quota.

        Args:
            mode: the mode of this broker.
            share: [2] the share under the old quota.
            was: [2] the old quota.
            quota: [2] the new quota.
        """
        pairs = zip(share.tolist(), was.tolist(), quota.tolist(), strict=True)
        return np.array([self._lowered(mode, *each) for each in pairs], np.int64)

    def _lowered(self, mode: Mode, share: int, was: int, quota: int) -> Rate:
        is_open = mode is Mode.OPEN and share == NO_RATE and quota != 0
        if quota == NO_RATE or is_open:
            return share
        if NO_RATE in (share, was):
            return _equal(quota, self._known_brokers())
        # These are Python's integers, because the product may have more than 64 bits.
        return share * quota // was if quota < was else share

    def _floor(self, quota: Rate, known: int) -> Rate:
        return None if quota is None else least_floor(quota, known, self._settings.floor_ppm)


def _equal(quota: Rate, known: int) -> Rate:
    return None if quota is None else quota // known
