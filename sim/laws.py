"""Laws over a whole run, computed from what the load counted.

Each broken law comes as (law, round, story). `sim.checkers` watches while the world runs; here is
what can only be said when it is over: how much was admitted over one and ten rounds, and that nobody
who asked got less than its floor.
"""

from collections.abc import Iterator

import numpy as np

from sim.cluster import Cluster
from sim.fault import Deed
from sim.metrics import WINDOW, first_fair, overshoot, right_shares
from sim.recording import Recording

#: Rounds over which nobody may be starved.
STARVED_ROUNDS = 3

Broken = tuple[str, int, str]


def laws_of(
    recording: Recording, cluster: Cluster, *, is_max_min: bool, is_core: bool
) -> Iterator[Broken]:
    """Every law that was broken."""
    if is_core:
        yield from starved(recording, cluster)
    if is_max_min:
        yield from overshot(recording, cluster)
        yield from unhealed(recording, cluster)


def overshot(recording: Recording, cluster: Cluster) -> Iterator[Broken]:
    """More admitted than the quota, tokens and what the scenario allows beside them."""
    bounds = cluster.scenario.bounds
    for window, most in ((1, bounds.admitted_round), (WINDOW, bounds.admitted_10)):
        if most is None:
            continue
        excess = overshoot(recording, window)
        # One request per broker, where that is more.
        allowed = max(most, 1 + _requests(recording, cluster) / window)
        if excess > allowed:
            story = (
                f"{excess:.4f} of the quota admitted over {window} rounds, {allowed:.4f} allowed"
            )
            yield "admission", recording.warmup, story


def starved(recording: Recording, cluster: Cluster) -> Iterator[Broken]:
    """Who asked all the time and got less than min(want, floor) over three rounds."""
    floor = recording.floor_ppm / 1e6 / len(recording.brokers)
    for dimension in recording.limited:
        due_of_round = recording.quota[dimension] * recording.round_s * floor
        for number in range(recording.warmup, recording.rounds - STARVED_ROUNDS + 1):
            rounds = slice(number, number + STARVED_ROUNDS)
            is_up = recording.is_up[number : number + STARVED_ROUNDS + 1].all(axis=0)
            wanted = recording.wanted[rounds, ..., dimension]
            due = np.minimum(wanted, due_of_round).sum(axis=0)
            admitted = recording.admitted[rounds, ..., dimension].sum(axis=0)
            is_asking = (wanted > 0).all(axis=0) & is_up
            for group, place in np.argwhere(is_asking & (admitted < due)).tolist():
                largest = cluster.callers[group][place].largest[dimension]
                # A request is granted whole or not at all.
                if admitted[group, place] + largest < due[group, place] and not _is_frozen(
                    cluster, place, number
                ):
                    story = (
                        f"{recording.brokers[place]} got {admitted[group, place]} in "
                        f"{STARVED_ROUNDS} rounds, due {due[group, place]:.1f}"
                    )
                    yield "starvation", number, story


def unhealed(recording: Recording, cluster: Cluster) -> Iterator[Broken]:
    """Shares that did not become fair in time after the last fault, though there was time."""
    scenario = cluster.scenario
    if not cluster.faults or not recording.segments:
        return
    last = recording.segments[-1]
    heals_in = scenario.bounds.heals_in_rounds
    if last.stop - last.first <= heals_in + 1:
        return
    fair = first_fair(right_shares(recording), last, recording)
    if fair is None or fair - last.first > heals_in:
        story = f"shares were not fair {heals_in} rounds after the last fault"
        yield "agreement", last.first, story


def _requests(recording: Recording, cluster: Cluster) -> float:
    """One request of every broker, by the quota of a round: of the dimension where that is more."""
    parts = [0.0]
    for row in cluster.callers:
        for dimension in recording.limited:
            total = sum(caller.largest[dimension] for caller in row)
            parts.append(total / (recording.quota[dimension] * recording.round_s))
    return max(parts)


def _is_frozen(cluster: Cluster, place: int, number: int) -> bool:
    """Whether a place was frozen in one of the rounds that are looked at."""
    round_ns = cluster.scenario.round_ns
    begin, end = number * round_ns, (number + STARVED_ROUNDS) * round_ns
    return any(
        fault.deed is Deed.FREEZE
        and place in fault.places
        and fault.at_ns < end
        and (fault.end_ns or end) > begin
        for fault in cluster.faults
    )
