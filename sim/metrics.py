"""The figures of a run, to the letter of docs/simulator.md.

Law: pure functions of a recording. Rounds of the warm-up count nowhere.

Where a group has two dimensions, a share is right when it is so in both, and `utilisation` is that of
the dimension that max-min fills more, round by round and group by group; all groups of a run have one
quota, so sums over groups are sums over parts of it.
"""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from sim.recording import Recording, Segment

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: How near a share must be to its max-min part, as a part of it.
FAIR_WITHIN = 0.02
#: How many of the (broker, round) shares must be, where anything goes wrong; else all.
FAIR_PART_WITH_FAULTS = 0.999
#: Consecutive rounds of `overshoot_10`.
WINDOW = 10
#: Smallest part, in units a round, that a ratio is made of.
_DUE_MIN = 1.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What the last line says, in its order."""

    rounds_to_fair: int | None
    utilisation: float
    movement: float
    overshoot_round: float
    overshoot_10: float
    lowest_ratio: float | None

    def as_json(self) -> dict[str, float | int | None]:
        """Rounded to what means something."""
        return {
            name: round(value, 5) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def figures_of(recording: Recording) -> Figures:
    """Compute everything."""
    right = right_shares(recording)
    fair_from = [first_fair(right, segment, recording) for segment in recording.segments]
    return Figures(
        rounds_to_fair=rounds_to_fair(fair_from, recording.segments),
        utilisation=utilisation(recording),
        movement=movement(recording),
        overshoot_round=overshoot(recording, 1),
        overshoot_10=overshoot(recording, WINDOW),
        lowest_ratio=lowest_ratio(recording, fair_from),
    )


def right_shares(recording: Recording) -> Floats:
    """By (boundary, group, place): 1 where a share is near its part, 0 where not, nan for none."""
    limited = recording.limited
    shares, parts = recording.shares[..., limited], recording.parts[..., limited]
    is_near = np.abs(shares - parts) <= FAIR_WITHIN * parts + 1e-9
    is_there = ~(np.isnan(shares) | np.isnan(parts)).any(axis=-1)
    right: Floats = np.where(is_there, is_near.all(axis=-1), np.nan)
    return right


def first_fair(right: Floats, segment: Segment, recording: Recording) -> int | None:
    """The first boundary from which enough shares are right until the segment ends."""
    stretch = right[segment.first : segment.stop]
    flat = stretch.reshape(len(stretch), -1)
    count = np.sum(~np.isnan(flat), axis=1)
    wrong = np.sum(flat == 0, axis=1)
    # From each boundary to the end.
    count, wrong = (np.cumsum(one[::-1])[::-1] for one in (count, wrong))
    wrong_part = 1 - FAIR_PART_WITH_FAULTS if recording.has_faults else 0.0
    is_fair = wrong <= wrong_part * count + 1e-9
    if not is_fair.any():
        return None
    # Once fair "from here on" is not lost again by coming nearer to the end of a good stretch.
    return segment.first + int(np.argmax(is_fair))


def rounds_to_fair(fair_from: list[int | None], segments: tuple[Segment, ...]) -> int | None:
    """The worst of all steps; None if one of them was never made good."""
    taken = []
    for fair, segment in zip(fair_from, segments, strict=True):
        if fair is None:
            return None
        taken.append(fair - segment.first)
    return max(taken, default=None)


def utilisation(recording: Recording) -> float:
    """Admitted, by the sum over rounds of min(quota, wanted)."""
    limited, begin = recording.limited, recording.warmup
    quota = recording.quota[limited] * recording.round_s
    # By (round, group, dimension), in quotas.
    wanted = recording.wanted[begin:].sum(axis=2)[..., limited] / quota
    admitted = recording.admitted[begin:].sum(axis=2)[..., limited] / quota
    could = np.minimum(wanted, 1.0)
    # By (round, group): the dimension that max-min fills more.
    due = np.nansum(recording.due[begin : begin + len(wanted)], axis=2)[..., limited] / quota
    fuller = due.argmax(axis=-1)[..., np.newaxis]
    total = np.take_along_axis(could, fuller, axis=-1).sum()
    did = np.take_along_axis(admitted, fuller, axis=-1).sum()
    return float(did / total) if total > 0 else 1.0


def movement(recording: Recording) -> float:
    """Mean over rounds of the sum of share changes, by the quota."""
    limited, begin = recording.limited, recording.warmup
    shares = recording.shares[begin:][..., limited]
    changes = np.abs(np.diff(shares, axis=0))
    moved = np.nansum(changes, axis=2) / recording.quota[limited]
    return float(moved.mean()) if moved.size else 0.0


def overshoot(recording: Recording, window: int) -> float:
    """The largest (admitted in so many rounds - tokens at their start) / quota in them."""
    limited, begin = recording.limited, recording.warmup
    admitted = recording.admitted[begin:].sum(axis=2)[..., limited]
    tokens = recording.tokens[begin:-1][..., limited]
    window = min(window, len(admitted))
    sums = np.cumsum(np.concatenate([np.zeros_like(admitted[:1]), admitted]), axis=0)
    granted = sums[window:] - sums[:-window]
    quota = recording.quota[limited] * recording.round_s * window
    return float(((granted - tokens[: len(granted)]) / quota).max())


def lowest_ratio(recording: Recording, fair_from: list[int | None]) -> float | None:
    """The lowest admitted / max-min part over the rounds from fair on.

    A segment that never was fair counts from its second boundary on: what is starved must show.
    """
    lowest: float | None = None
    limited = recording.limited
    for fair, segment in zip(fair_from, recording.segments, strict=True):
        first = segment.first + 1 if fair is None else fair
        # Round k lasts from boundary k to k + 1.
        due = recording.due[first : segment.stop - 1][..., limited]
        admitted = recording.admitted[first : segment.stop - 1][..., limited]
        counts = due >= _DUE_MIN
        if counts.any():
            ratio = float((admitted[counts] / due[counts]).min())
            lowest = ratio if lowest is None else min(lowest, ratio)
    return lowest
