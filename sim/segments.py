"""Where a run is judged: from each step to the next, but not while something is out of order.

A step is a change of true demand or of who is there. Partitions, crashes and the like are no steps
when they begin (nobody can be fair to those it cannot hear of), but their end is one: from there on
shares must become fair. A run without any step is judged from the end of its warm-up.
"""

from bisect import bisect_right

from sim.fault import Fault
from sim.recording import Segment
from sim.scenario import Demand, Scenario


def segments_of(
    scenario: Scenario, demand: Demand, faults: tuple[Fault, ...]
) -> tuple[Segment, ...]:
    """The stretches in which shares are judged, in order of time."""
    steps = set(demand.steps_ns)
    disturbed: list[tuple[int, int]] = []
    end_ns = scenario.rounds_all * scenario.round_ns
    for fault in faults:
        over_ns = end_ns if fault.end_ns is None else fault.end_ns
        steps |= {fault.at_ns, over_ns}
        if not fault.deed.is_membership:
            disturbed.append((fault.at_ns, over_ns))
    begin_ns = scenario.warmup * scenario.round_ns
    boundaries = [number * scenario.round_ns for number in range(scenario.rounds_all + 1)]
    moments = sorted(step for step in steps if begin_ns <= step < end_ns)
    if not moments:
        return (Segment(scenario.warmup, len(boundaries)),)
    segments = []
    for moment, following in zip(moments, [*moments[1:], end_ns], strict=True):
        if any(since <= moment < until for since, until in disturbed):
            continue
        first, stop = bisect_right(boundaries, moment), bisect_right(boundaries, following)
        if first < stop:
            segments.append(Segment(first, stop))
    return tuple(segments)
