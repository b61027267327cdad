"""What a scenario would have made of a log: the logged demand on `rgd.core.fluid`, window by window.

Law: the rules are the core's own. Demand is taken as logged and spread evenly over each window: callers that would have
adapted to other limits are not modelled. The scenario `AS_LOGGED` is replayed first, and its difference from the log is
the error of the model.

Another number of brokers folds the demand, in the order of names: those beyond the logged ones take from these in
turn, so that the demand of each is split evenly over it and those that came to it; those that are too many
bring theirs to the first ones in turn.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rgd.analysis.chunks import DIMENSIONS, Floats
from rgd.analysis.scenarios import Scenario
from rgd.analysis.windows import GroupWindows, Rates
from rgd.core.exchange.columns import Flags, Ints
from rgd.core.fluid.cluster import Cluster, Settings
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI, QUOTA_MAX

#: Rounds of a window that are modelled one by one; after them shares hardly move while demand does not.
ROUNDS_MAX: Final = 20
#: Under `max-min` brokers report a step in demand at once: shares follow so long after the begin of a round.
STEP_MS: Final = 150
#: The first rounds are the log's: brokers that start have their floors for up to two, which begin within windows.
START_ROUNDS: Final = 3


def replay(
    groups: Sequence[GroupWindows], scenario: Scenario, *, window_ms: int, round_ms: float
) -> list[GroupWindows]:
    """The windows that the scenario would have had, of the same groups in the same order.

    Args:
        groups: their windows as logged.
        scenario: what is different.
        window_ms: length of a window.
        round_ms: length of a logged round.
    """
    pace = _Pace.of(window_ms, scenario.round_ms or round_ms)
    changed = [_changed(windows, scenario) for windows in groups]
    together: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, windows in enumerate(changed):
        together[len(windows.brokers), _changes(windows)].append(place)
    replayed = list(changed)
    for places in together.values():
        some = [changed[place] for place in places]
        for place, windows in zip(places, _replay(some, pace), strict=True):
            replayed[place] = windows
    return replayed


@dataclass(frozen=True, slots=True)
class _Pace:
    """How windows and rounds follow each other."""

    window_ms: int
    round_ms: int
    #: Rounds in a window, and windows in a round; one of them is 1.
    rounds: int
    windows: int

    @classmethod
    def of(cls, window_ms: int, round_ms: float) -> "_Pace":
        rounds, windows = round(window_ms / round_ms), round(round_ms / window_ms)
        return cls(window_ms, max(1, round(round_ms)), max(1, rounds), max(1, windows))


def _changes(windows: GroupWindows) -> tuple[tuple[int, str], ...]:
    """When which policy came into force."""
    policies = windows.policy
    return tuple(
        (0 if at == 0 else int(windows.start_ms[at]), policy)
        for at, policy in enumerate(policies)
        if at == 0 or policy != policies[at - 1]
    )


def _changed(windows: GroupWindows, scenario: Scenario) -> GroupWindows:
    """The windows with the scenario's policy, quotas and brokers; what was admitted is the log's, in proportion to the quota."""
    policy = windows.policy
    if scenario.policy is not None:
        policy = (scenario.policy,) * len(policy)
    fold = _fold(len(windows.brokers), scenario.brokers or len(windows.brokers))
    rates = {of: _rates(windows, of, scenario, fold) for of in DIMENSIONS}
    nearest = np.arange(fold.shape[1]) % fold.shape[0]
    return replace(
        windows,
        policy=policy,
        rates=rates,
        brokers=tuple(_names(windows.brokers, fold.shape[1])),
        covered=(windows.covered[:, :, None] * (fold > 0)).max(axis=1),
        weight=windows.weight[:, nearest],
        is_begun=windows.is_begun[:, nearest],
        refused_by=(),
    )


def _fold(brokers: int, to: int) -> Floats:
    """[brokers, to] which part of a broker's demand each new broker has."""
    most = max(brokers, to)
    fold = np.zeros((brokers, to))
    fold[np.arange(most) % brokers, np.arange(most) % to] = 1.0
    return np.asarray(fold / fold.sum(axis=1, keepdims=True), np.float64)


def _names(brokers: Sequence[str], count: int) -> list[str]:
    known = len(brokers)
    return [
        brokers[at] if at < known else f"{brokers[at % known]} ({at // known + 1})"
        for at in range(count)
    ]


def _rates(windows: GroupWindows, of: str, scenario: Scenario, fold: Floats) -> Rates:
    rates = windows.rates[of]
    quota = rates.quota
    for other in scenario.quotas:
        if other.concerns(windows.group, windows.kind, of):
            number = quota * other.number if other.is_factor else np.full_like(quota, other.number)
            quota = np.minimum(number, QUOTA_MAX)
    limit = np.nan_to_num(quota, nan=np.inf)
    scale = np.where(rates.quota > 0, quota / np.maximum(rates.quota, 1 / MILLI), 1.0)
    return replace(
        rates,
        wanted=rates.wanted @ fold,
        admitted=rates.admitted @ fold * scale[:, None],
        quota=quota,
        quota_logged=np.repeat(_milli(quota)[:, None], fold.shape[1], axis=1),
        quota_max=np.maximum(limit, np.append(limit[:1], limit[:-1])),
        recovered=np.zeros_like(quota),
    )


def _milli(rates: Floats) -> Ints:
    """Thousandths, `NO_RATE` where a rate is NaN."""
    known = np.nan_to_num(np.minimum(rates, QUOTA_MAX), nan=NO_RATE / MILLI)
    milli: Ints = np.rint(known * MILLI).astype(np.int64)
    return milli


def _replay(groups: Sequence[GroupWindows], pace: _Pace) -> list[GroupWindows]:
    """Replay groups with equally many brokers and the same policies at the same times."""
    starts = np.unique(np.concatenate([windows.start_ms for windows in groups]))
    at = [np.searchsorted(starts, windows.start_ms) for windows in groups]
    # A group without a window keeps its quota and weights, and wants nothing.
    last = [np.maximum(np.searchsorted(one, np.arange(len(starts)), "right") - 1, 0) for one in at]
    wanted = np.zeros((len(starts), len(groups), len(groups[0].brokers), len(DIMENSIONS)))
    for place, windows in enumerate(groups):
        both = [np.floor(windows.rates[of].wanted * MILLI) for of in DIMENSIONS]
        wanted[at[place], place] = np.stack(both, axis=-1)
    quota = np.stack(
        [
            np.stack([_milli(one.rates[of].quota)[before] for of in DIMENSIONS], axis=-1)
            for one, before in zip(groups, last, strict=True)
        ],
        axis=1,
    )
    weight = np.stack(
        [one.weight[before] for one, before in zip(groups, last, strict=True)], axis=1
    )
    policies = [groups[0].policy[place] for place in last[0].tolist()]
    admitted, share = _run(wanted, quota, weight, policies, pace)
    start = -(-START_ROUNDS * pace.windows // pace.rounds)
    return [
        _as_windows(windows, admitted[one, place], share[one, place], one < start)
        for place, (windows, one) in enumerate(zip(groups, at, strict=True))
    ]


def _run(
    wanted: Floats, quota: Ints, weight: Ints, policies: Sequence[str], pace: _Pace
) -> tuple[Floats, Floats]:
    """Run windows one after the other; [windows, groups, brokers, dimensions] rates, Milli per second.

    Args:
        wanted: [windows, groups, brokers, dimensions] Milli per second.
        quota: [windows, groups, dimensions] Milli per second, `NO_RATE` for unlimited.
        weight: [windows, groups, brokers] thousandths.
        policies: [windows].
        pace: of windows and rounds.
    """
    settings = Settings(policy=policies[0], round_ms=pace.round_ms)
    cluster = Cluster(quota[0], wanted.shape[2], settings, weight[0])
    admitted, share = np.empty_like(wanted), np.empty_like(wanted)
    since = 0
    for window, offered in enumerate(wanted):
        cluster.set_policy(policies[window], quota[window], weight[window])
        if pace.windows == 1:
            admitted[window], share[window] = _rounds(cluster, offered, pace, policies[window])
            continue
        admitted[window], share[window] = _admit(cluster, offered, pace.window_ms), cluster.share
        if window + 1 - since == pace.windows:
            round_ = slice(since, window + 1)
            cluster.exchange(wanted[round_].mean(axis=0), admitted[round_].mean(axis=0))
            since = window + 1
    return admitted, share


def _rounds(cluster: Cluster, offered: Floats, pace: _Pace, policy: str) -> tuple[Floats, Floats]:
    """The mean rates of a window of several rounds with the same demand; Milli per second."""
    ms = pace.window_ms / pace.rounds
    admitted, shares = np.zeros_like(offered), np.zeros_like(offered)
    last = np.full_like(offered, np.nan)
    for number in range(1, pace.rounds + 1):
        share = cluster.share
        now = _round(cluster, offered, ms, policy)
        is_settled = np.array_equal(share, cluster.share) and np.array_equal(now, last)
        # What has settled stays until the demand changes.
        more = pace.rounds - number + 1 if is_settled or number == ROUNDS_MAX else 1
        admitted += now * more
        shares += share * float(more)
        if more > 1:
            break
        last = now
    return admitted / pace.rounds, shares / pace.rounds


def _round(cluster: Cluster, offered: Floats, ms: float, policy: str) -> Floats:
    """Rates that were admitted in a round with an exchange, Milli per second."""
    if policy != SharePolicyName.MAX_MIN:
        admitted = _admit(cluster, offered, ms)
        cluster.exchange(offered, admitted)
        return admitted
    before_ms = min(STEP_MS, ms / 2)
    before = _admit(cluster, offered, before_ms)
    cluster.exchange(offered, before)
    after_ms = ms - before_ms
    return (before * before_ms + _admit(cluster, offered, after_ms) * after_ms) / ms


def _admit(cluster: Cluster, offered: Floats, ms: float) -> Floats:
    """Rates that were admitted of rates, Milli per second."""
    per_s = ms / 1000
    return cluster.admit(np.floor(offered * per_s), ms) / per_s


def _as_windows(
    windows: GroupWindows, admitted: Floats, share: Floats, is_start: Flags
) -> GroupWindows:
    """The windows with what was admitted and the shares; [windows, brokers, dimensions] Milli per second.

    Windows of the start have what the log has.
    """
    rates = {}
    for place, of in enumerate(DIMENSIONS):
        logged = windows.rates[of]
        granted = np.where(is_start[:, None], logged.admitted, admitted[..., place] / MILLI)
        granted = np.minimum(granted, logged.wanted)
        limit = np.where(share[..., place] < 0, np.nan, share[..., place] / MILLI)
        rates[of] = replace(logged, admitted=granted, refused=logged.wanted - granted, share=limit)
    return replace(windows, rates=rates)
