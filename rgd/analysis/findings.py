"""The findings about one group, kind and dimension over the whole log.

Law: rates are means by time over the windows in which any broker has a record, so that they agree with
the totals. The worst value is stated beside the mean, with its time and broker. Incomplete windows
(maybe the first and the last) count in the means, but not among the worst.

The keys of `summarise` are those of `summary.json`, "groups" (docs/report.md).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from rgd.analysis import steps
from rgd.analysis.fairness import Fairness
from rgd.analysis.row_columns import DIMENSIONS, Floats
from rgd.analysis.windows import GroupWindows, Rates
from rgd.core.exchange.columns import REFUSED_BY

#: A broker that gets less than this fraction of its part for long enough is starved.
STARVED_BELOW: Final = 0.5

#: Least windows in a row of a starved interval; one window may be the delay of one exchange round.
STARVED_WINDOWS_MIN: Final = 2

#: Rounds in which a broker may not yet have its part of a group that it begins to use: the others do not know its demand.
START_ROUNDS: Final = 2

#: Most starved intervals (the longest) and steps (the first) in one summary; more are counted.
STARVED_LISTED_MAX: Final = 20
STEPS_LISTED_MAX: Final = 50

#: A window of which the log covers less than this fraction is not among the worst.
WHOLE_PART_MIN: Final = 0.9

#: Windows longer than this many rounds give no counts in rounds.
ROUNDS_A_WINDOW_MAX: Final = 1.5

Json = Any

#: What `summarise` makes.
Finding = dict[str, Json]


def summarise(
    windows: GroupWindows, dimension: str, fairness: Fairness, window_ms: int, round_ms: float
) -> Finding:
    """The findings about one dimension of a group's windows; lengths in ms."""
    rates = windows.rates[dimension]
    starved = find_starved(windows, fairness, window_ms, round_ms)
    known_steps = steps.find_steps(windows, rates, fairness)
    is_countable = window_ms <= ROUNDS_A_WINDOW_MAX * round_ms
    rounds = [
        round(step.windows * window_ms / round_ms)
        if step.windows is not None and is_countable
        else None
        for step in known_steps
    ]
    return {
        "group": windows.group,
        "kind": windows.kind,
        "dimension": dimension,
        "refused_by": _refused_by(windows.refused_by, dimension),
        **_means(windows, rates, fairness),
        **_worst(windows, fairness, window_ms),
        "rounds_to_fair": _worst_rounds(rounds),
        "policies": sorted(set(windows.policy)),
        "windows": len(windows.start_ms),
        "seconds": _number(windows.seconds.sum()),
        "from_ms": int(windows.start_ms[0]),
        "to_ms": int(windows.start_ms[-1] + window_ms),
        "steps_found": len(known_steps),
        "steps": [
            {"at_ms": step.at_ms, "cause": step.cause, "rounds": count}
            | {"before": step.before, "after": step.after, "joined": [], "left": []}
            for step, count in zip(known_steps, rounds, strict=True)
        ][:STEPS_LISTED_MAX],
        "starved_intervals": len(starved),
        "starved_s": _seconds(starved),
        "starved": starved[:STARVED_LISTED_MAX],
        "brokers": _brokers(windows, rates, fairness, starved),
        "what_if": [],
        "compared": None,
    }


#: The keys of a finding that a scenario's entry has too.
WHAT_IF: Final = (
    *("quota", "admitted", "unmet", "unused", "utilisation", "overshoot_max", "jain_mean"),
    *("lowest_ratio_mean", "lowest_ratio", "rounds_to_fair", "starved_s"),
)


#: Most brokers that a scenario lists of a group, the longest starved first.
WHAT_IF_BROKERS_MAX: Final = 20


def what_if_of(scenario: str, logged: dict[str, Json], found: dict[str, Json]) -> dict[str, Json]:
    """The entry of a scenario in `what_if`: its figures, and how much more was admitted than logged.

    Args:
        scenario: its text.
        logged: the finding about the log.
        found: the finding about the windows that the scenario would have had.
    """
    admitted = logged["admitted"]
    keys = ("broker", "admitted", "share", "starved_s")
    brokers = sorted(found["brokers"], key=lambda one: -one["starved_s"])[:WHAT_IF_BROKERS_MAX]
    return {
        "scenario": scenario,
        **{key: found[key] for key in WHAT_IF},
        "change": _number((found["admitted"] - admitted) / admitted) if admitted else None,
        "brokers": [{key: one[key] for key in keys} for one in brokers],
    }


def worst_first(findings: Iterable[dict[str, Json]]) -> list[dict[str, Json]]:
    """Findings about groups or tenants in the order in which a reader looks at them: starved ones, then those that got least of what they wanted."""

    def order(finding: dict[str, Json]) -> tuple[float, bool, float]:
        wanted = finding["wanted"] or 0.0
        unmet = finding["unmet"] / wanted if wanted else 0.0
        return (-finding["starved_s"], finding.get("quota", 0) is None, -unmet)

    return sorted(findings, key=order)


def _refused_by(levels: Sequence[int], dimension: str) -> dict[str, int]:
    """Whole units that each level refused of a dimension; without those of none.

    `levels` are by `REFUSED_BY`, messages before bytes; none: nothing was refused.
    """
    column = levels[DIMENSIONS.index(dimension) :: len(DIMENSIONS)]
    return {level: count for level, count in zip(REFUSED_BY, column, strict=False) if count}


def find_starved(
    windows: GroupWindows, fairness: Fairness, window_ms: int, round_ms: float
) -> list[dict[str, Json]]:
    """Intervals in which a broker got less than `STARVED_BELOW` of its part, the longest first; the ratio is the mean.

    One that begins where the broker began to use the group is none if the exchange may have taken that long.
    """
    found = []
    is_starved = fairness.ratio < STARVED_BELOW
    start_ms = START_ROUNDS * round_ms + window_ms
    for index, broker in enumerate(windows.brokers):
        places = np.flatnonzero(is_starved[:, index])
        for first, last in steps.runs_of(places, windows.start_ms[places], window_ms):
            from_ms, to_ms = int(windows.start_ms[first]), int(windows.start_ms[last] + window_ms)
            is_start = windows.is_begun[max(0, first - 1) : first + 1, index].any()
            if last - first + 1 >= STARVED_WINDOWS_MIN and not (
                is_start and to_ms - from_ms <= start_ms
            ):
                ratio = _number(fairness.ratio[first : last + 1, index].mean())
                found.append({"broker": broker, "from_ms": from_ms, "to_ms": to_ms, "ratio": ratio})
    return sorted(
        found, key=lambda one: (one["from_ms"] - one["to_ms"], one["from_ms"], one["broker"])
    )


def _seconds(starved: Iterable[dict[str, Json]]) -> float | None:
    return _number(sum(one["to_ms"] - one["from_ms"] for one in starved) / 1000)


def _means(windows: GroupWindows, rates: Rates, fairness: Fairness) -> dict[str, Json]:
    admitted, wanted = rates.admitted.sum(axis=1), rates.wanted.sum(axis=1)
    owed = np.minimum(np.nan_to_num(rates.quota, nan=np.inf), wanted)
    due = np.where(fairness.is_due, windows.seconds, 0.0)
    means = {
        "admitted": admitted,
        "wanted": wanted,
        "refused": rates.refused.sum(axis=1),
        "quota": rates.quota,
        "unmet": fairness.unmet,
        "unused": fairness.unused,
        "recovered": rates.recovered,
        "jain_mean": fairness.jain,
        "lowest_ratio_mean": fairness.lowest,
    }
    found = _mean(np.stack([*means.values()], axis=1), windows.seconds)
    [utilisation] = _quotient((admitted * due)[:, None], (owed * due)[:, None])
    return {**dict(zip(means, found, strict=True)), "utilisation": utilisation}


def _worst(windows: GroupWindows, fairness: Fairness, window_ms: int) -> dict[str, Json]:
    """The extremes over complete windows; over all windows if none is complete."""
    is_whole = windows.seconds * 1000 >= WHOLE_PART_MIN * window_ms
    if not is_whole.any():
        is_whole[:] = True
    overshoot = np.where(is_whole, fairness.overshoot, np.nan)
    ratio = np.where(is_whole[:, None], fairness.ratio, np.nan)
    jain = np.where(is_whole, fairness.jain, np.nan)
    index = int(np.where(np.isnan(ratio), np.inf, ratio).argmin())
    window, broker = divmod(index, ratio.shape[1])
    lowest = ratio[window, broker]
    is_known = not math.isnan(lowest)
    return {
        "overshoot_max": _extreme(overshoot, largest=True),
        "jain_min": _extreme(jain, largest=False),
        "lowest_ratio": _number(lowest),
        "lowest_ratio_broker": windows.brokers[broker] if is_known else None,
        "lowest_ratio_at_ms": int(windows.start_ms[window]) if is_known else None,
    }


def _brokers(
    windows: GroupWindows, rates: Rates, fairness: Fairness, starved: list[dict[str, Json]]
) -> list[dict[str, Json]]:
    """Each broker over the whole log."""
    due = np.where(fairness.is_due, windows.seconds, 0.0)[:, None]
    columns = {
        "admitted": rates.admitted,
        "wanted": rates.wanted,
        "refused": rates.refused,
        "share": rates.share,
        "part": fairness.part,
    }
    means = {name: _mean(column, windows.seconds) for name, column in columns.items()}
    ratios = _quotient(rates.admitted * due, fairness.part * due)
    return [
        {
            "broker": broker,
            **{name: mean[index] for name, mean in means.items()},
            "ratio": ratios[index],
            "starved_s": _seconds(one for one in starved if one["broker"] == broker),
        }
        for index, broker in enumerate(windows.brokers)
    ]


def _worst_rounds(rounds: list[int | None]) -> int | None:
    known = [count for count in rounds if count is not None]
    return max(known) if known and len(known) == len(rounds) else None


def _mean(values: Floats, seconds: Floats) -> list[float | None]:
    """Of each column the mean by time over the windows that have a value."""
    weights = np.isfinite(values) * seconds[:, None]
    return _quotient(np.where(weights > 0, values, 0.0) * weights, weights)


def _quotient(amounts: Floats, by: Floats) -> list[float | None]:
    """Of each column the quotient of two sums."""
    sums = zip(amounts.sum(axis=0).tolist(), by.sum(axis=0).tolist(), strict=True)
    return [_number(amount / total) if total > 0 else None for amount, total in sums]


def _extreme(values: Floats, *, largest: bool) -> float | None:
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    return _number(known.max() if largest else known.min())


def _number(value: float) -> float | None:
    """A number for JSON, with six decimal places."""
    return None if math.isnan(value) else round(float(value), 6)
