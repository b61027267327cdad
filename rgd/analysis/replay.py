"""What a scenario would have made of a log: the logged demand under the core's rules, window by window.

Law: the rules are the core's own. Demand is taken as logged, and as uneven within each window as what was admitted of it
shows (`uneven`): callers that would have adapted to other limits are not modelled. The scenario `AS_LOGGED` is replayed
first, and its difference from the log is the error of the shares that the model computes.

Another number of brokers folds the demand, in the order of names: those beyond the logged ones take from these in
turn, so that the demand of each is split evenly over it and those that came to it; those that are too many
bring theirs to the first ones in turn.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rgd.analysis.fairness import JUDGED_COVER_MIN
from rgd.analysis.row_columns import DIMENSIONS, Floats
from rgd.analysis.scenarios import Scenario
from rgd.analysis.uneven import Uneven, moves
from rgd.analysis.windows import GroupWindows, Rates
from rgd.core.exchange.columns import Ints
from rgd.core.fluid.cluster import Cluster, Settings
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI, QUOTA_MAX

#: Rounds of a window that are modelled one by one; after them shares hardly move while demand does not.
ROUNDS_MAX: Final = 20
#: So many are: after fewer equal rounds, demand is still estimated by the noise of the step before them.
ROUNDS_MIN: Final = 5
#: Under `max-min` brokers report a step in demand at once: shares follow so long after the begin of a round.
STEP_MS: Final = 150
#: The first rounds have the log's shares: brokers that start have their floors for up to two, which begin within windows.
START_ROUNDS: Final = 3


def replay(
    groups: Sequence[GroupWindows], scenario: Scenario, window_ms: int, round_ms: float
) -> list[GroupWindows]:
    """The windows that the scenario would have had, of the same groups in the same order.

    Args:
        groups: their windows as logged.
        scenario: what is different.
        window_ms: length of a window.
        round_ms: length of a logged round.
    """
    pace = _Pace.of(window_ms, scenario.round_ms or round_ms)
    changed = [_changed(windows, scenario, pace) for windows in groups]
    together: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, (windows, _) in enumerate(changed):
        together[len(windows.brokers), _changes(windows)].append(place)
    replayed = list(groups)
    for places in together.values():
        some = [changed[place] for place in places]
        for place, windows in zip(places, _replay(some, pace), strict=True):
            replayed[place] = windows
    return replayed


@dataclass(frozen=True, slots=True)
class _Pace:
    """How windows and rounds follow each other."""

    round_ms: int
    #: Rounds in a window, and windows in a round; one of them is 1.
    rounds: int
    windows: int
    #: Windows of the start, which have the log's shares.
    start: int
    #: Part of a window before brokers follow a step in demand.
    late: float

    @classmethod
    def of(cls, window_ms: int, round_ms: float) -> "_Pace":
        rounds = max(1, round(window_ms / round_ms))
        windows = max(1, round(round_ms / window_ms))
        start = -(-START_ROUNDS * windows // rounds)
        late_ms = min(STEP_MS, round_ms / 2)
        return cls(max(1, round(round_ms)), rounds, windows, start, late_ms / window_ms)


def _changes(windows: GroupWindows) -> tuple[tuple[int, str], ...]:
    """In which of its windows which policy came into force."""
    policies = windows.policy
    return tuple(
        (at, policy) for at, policy in enumerate(policies) if at == 0 or policy != policies[at - 1]
    )


def _changed(windows: GroupWindows, scenario: Scenario, pace: _Pace) -> tuple[GroupWindows, Uneven]:
    """The windows with the scenario's policy, quotas and brokers; and the demand of those, Milli per second.

    The windows' shares are the log's, in proportion to the quota.
    """
    policy = windows.policy
    if scenario.policy is not None:
        policy = (scenario.policy,) * len(policy)
    fold = _fold(len(windows.brokers), scenario.brokers or len(windows.brokers))
    wanted, admitted, share = (
        fold.T @ _milli_of(windows, name) for name in ("wanted", "admitted", "share")
    )
    nearest = np.arange(fold.shape[1]) % fold.shape[0]
    changed = replace(
        windows,
        policy=policy,
        rates={of: _rates(windows, of, scenario, fold) for of in DIMENSIONS},
        brokers=tuple(_names(windows.brokers, fold.shape[1])),
        covered=_covered(windows.covered, fold.shape[1]),
        weight=windows.weight[:, nearest],
        is_begun=windows.is_begun[:, nearest],
        refused_by=(),
    )
    is_covered = changed.covered >= JUDGED_COVER_MIN * windows.seconds[:, None]
    is_known = is_covered[..., None] & ~moves(share)
    # The log's own shares are in force in the first ones, and brokers' last records end within the last one.
    is_known[: pace.start] = is_known[-1] = True
    return changed, Uneven.of(wanted, admitted, np.where(is_known, share, 0.0))


def _fold(brokers: int, to: int) -> Floats:
    """[brokers, to] which part of a broker's demand each new broker has."""
    most = max(brokers, to)
    fold = np.zeros((brokers, to))
    fold[np.arange(most) % brokers, np.arange(most) % to] = 1.0
    return np.asarray(fold / fold.sum(axis=1, keepdims=True), np.float64)


def _covered(covered: Floats, to: int) -> Floats:
    """[windows, to] the most that any of the brokers has a record of whose demand each new broker has."""
    brokers = covered.shape[1]
    folded = np.zeros((len(covered), to))
    for at in range(max(brokers, to)):
        folded[:, at % to] = np.maximum(folded[:, at % to], covered[:, at % brokers])
    return folded


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
        share=np.nan_to_num(rates.share) @ fold * scale[:, None],
        quota=quota,
        quota_logged=np.repeat(_milli(quota)[:, None], fold.shape[1], axis=1),
        quota_max=np.maximum(limit, np.append(limit[:1], limit[:-1])),
        recovered=np.zeros_like(quota),
    )


def _milli_of(windows: GroupWindows, name: str) -> Floats:
    """[windows, brokers, dimensions] rates of a name, Milli per second; 0 for none."""
    rates = [getattr(windows.rates[of], name) for of in DIMENSIONS]
    return np.asarray(np.nan_to_num(np.stack(rates, axis=-1)) * MILLI, np.float64)


def _milli(rates: Floats) -> Ints:
    """Thousandths, `NO_RATE` where a rate is NaN."""
    known = np.nan_to_num(np.minimum(rates, QUOTA_MAX), nan=NO_RATE / MILLI)
    milli: Ints = np.rint(known * MILLI).astype(np.int64)
    return milli


def _replay(groups: Sequence[tuple[GroupWindows, Uneven]], pace: _Pace) -> list[GroupWindows]:
    """Replay groups with equally many brokers and the same policies in their windows of the same number.

    Each has its own windows one after the other, whenever they were, so it has what it has alone (but that the rounds
    of a window end once the shares of all have settled).
    """
    changed = [windows for windows, _ in groups]
    longest = max(changed, key=lambda windows: len(windows.start_ms))
    windows_in = np.arange(len(longest.start_ms))
    # One that has no more windows keeps its quota and weights, and wants nothing.
    last = [np.minimum(windows_in, len(windows.start_ms) - 1) for windows in changed]
    shape = (len(windows_in), len(groups), len(longest.brokers), len(DIMENSIONS))
    demand, share = Uneven.nothing(shape), np.zeros(shape)
    for place, (windows, wanted) in enumerate(groups):
        own = windows_in[: len(windows.start_ms)]
        demand.put((own, place), wanted)
        share[own, place] = _milli_of(windows, "share")
    quota = np.stack(
        [
            np.stack([_milli(one.rates[of].quota)[before] for of in DIMENSIONS], axis=-1)
            for one, before in zip(changed, last, strict=True)
        ],
        axis=1,
    )
    weight = np.stack(
        [one.weight[before] for one, before in zip(changed, last, strict=True)], axis=1
    )
    admitted = _run(demand, share, quota, weight, longest.policy, pace=pace)
    return [
        _as_windows(windows, *(of[: len(windows.start_ms), place] for of in (admitted, share)))
        for place, windows in enumerate(changed)
    ]


def _run(
    demand: Uneven,
    share: Floats,
    quota: Ints,
    weight: Ints,
    policies: Sequence[str],
    *,
    pace: _Pace,
) -> Floats:
    """Run windows one after the other; [windows, groups, brokers, dimensions] what was admitted, Milli per second.

    Args:
        demand: [windows, groups, brokers, dimensions] Milli per second.
        share: [windows, groups, brokers, dimensions] Milli per second; those of the first windows are in force in
            them, where they are not 0, and the others are replaced.
        quota: [windows, groups, dimensions] Milli per second, `NO_RATE` for unlimited.
        weight: [windows, groups, brokers] thousandths.
        policies: [windows].
        pace: of windows and rounds.
    """
    settings = Settings(policy=policies[0], round_ms=pace.round_ms)
    limit = np.where(quota == NO_RATE, np.inf, quota)
    # A quota that falls is exceeded for a moment.
    limit[1:] = np.maximum(limit[1:], limit[:-1])
    # What brokers that admit less save, up to a burst.
    burst = settings.burst_ms * pace.windows / (pace.rounds * pace.round_ms)
    saved = limit[0] * burst
    cluster = Cluster(quota[0], share.shape[2], settings, weight[0])
    admitted = np.empty_like(share)
    since = 0
    for window, policy in enumerate(policies):
        cluster.set_policy(policy, quota[window], weight[window])
        offered = demand.at(window)
        given = share[window] if window < pace.start else np.zeros_like(share[window])
        if pace.windows == 1:
            admitted[window], share[window] = _rounds(cluster, offered, given, pace, policy)
        else:
            share[window] = _in_force(cluster, given)
            admitted[window] = offered.admitted(share[window])
        together = np.maximum(admitted[window].sum(axis=1), 1.0)
        part = np.minimum(1.0, (limit[window] + saved) / together).min(axis=1)
        admitted[window] *= part[:, None, None]
        saved += limit[window] - admitted[window].sum(axis=1)
        saved = np.clip(saved, 0.0, limit[window] * burst)
        if pace.windows > 1 and window + 1 - since == pace.windows:
            round_ = slice(since, window + 1)
            cluster.exchange(demand.wanted[round_].mean(axis=0), admitted[round_].mean(axis=0))
            since = window + 1
    return admitted


def _rounds(
    cluster: Cluster, demand: Uneven, given: Floats, pace: _Pace, policy: str
) -> tuple[Floats, Floats]:
    """What is admitted in a window of several rounds with the same demand, and the mean shares; Milli per second."""
    is_prompt = policy == SharePolicyName.MAX_MIN
    before = _in_force(cluster, given)
    shares, last = np.zeros_like(given), before
    for number in range(1, pace.rounds + 1):
        if is_prompt:
            cluster.exchange_early(demand.wanted)
        share = _in_force(cluster, given)
        if not is_prompt:
            cluster.exchange(demand.wanted, demand.admitted(share))
        # What has settled stays until the demand changes.
        is_settled = number >= ROUNDS_MIN and np.array_equal(share, last)
        more = pace.rounds - number + 1 if is_settled or number == ROUNDS_MAX else 1
        shares += share * more
        if more > 1:
            break
        last = share
    shares /= pace.rounds
    late = pace.late if is_prompt else 0.0
    return demand.admitted(before) * late + demand.admitted(shares) * (1 - late), shares


def _in_force(cluster: Cluster, given: Floats) -> Floats:
    """The shares that are given, and the cluster's where none are; Milli per second, infinite for unlimited."""
    computed = np.where(cluster.share == NO_RATE, np.inf, cluster.share)
    return np.where(given > 0, given, computed)


def _as_windows(windows: GroupWindows, admitted: Floats, share: Floats) -> GroupWindows:
    """The windows with what was admitted and the shares; [windows, brokers, dimensions] Milli per second."""
    rates = {}
    for place, of in enumerate(DIMENSIONS):
        logged = windows.rates[of]
        granted = np.minimum(admitted[..., place] / MILLI, logged.wanted)
        limit = np.where(np.isinf(share[..., place]), np.nan, share[..., place] / MILLI)
        rates[of] = replace(logged, admitted=granted, refused=logged.wanted - granted, share=limit)
    return replace(windows, rates=rates)
