"""How much a lease may have: a pure function of its wants and of the levels of its name.

Laws:

- A lease never has more at a time than its part of each level's rate for `horizon_ns`: its want, or
  where the leases of a level want more than its rate, that in proportion. So leases shrink with the
  share.
- A lease takes at most half of what a level has (but one unit if there is one), so that it leaves
  something to the others. A level is never in debt for a lease.
- A dimension that nothing limits is taken as it is wanted, so that its use is counted.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.chain import Chain
from rgd.core.buckets.level import LevelState
from rgd.core.buckets.refusal import Part, lower_part
from rgd.core.buckets.throttled import lowered
from rgd.core.leases.table import Counted, Load
from rgd.core.policies.model import Rate
from rgd.core.units import COUNT_MAX, Dimension, Nanos, Pair

_MESSAGES: Final = Dimension.MESSAGES
_BYTES: Final = Dimension.BYTES


class Fair(NamedTuple):
    """A lease's part of its levels."""

    #: Milli per second; the want in a dimension that nothing limits.
    messages: int
    bytes: int
    #: The even part of each dimension's lowest level, at most the want; None: nothing limits it.
    safe_messages: Rate
    safe_bytes: Rate
    #: The level that lowered the part of each dimension; None: the lease gets what it wants.
    by_messages: LevelState | None
    by_bytes: LevelState | None
    #: For how long the lease may hold its part.
    horizon_ns: int


def counted_at(chain: Chain, wants: Pair) -> Counted:
    """What each level of a chain counts as the want of a lease: at most its whole rate."""
    levels = dict.fromkeys((*chain.deciding, *chain.groups))
    return tuple(
        (
            level,
            Pair(
                _at_most(wants.messages, level.messages_rate),
                _at_most(wants.bytes, level.bytes_rate),
            ),
        )
        for level in levels
    )


def fair_part(chain: Chain, wants: Pair, loads: Mapping[LevelState, Load], horizon_ns: int) -> Fair:
    """The part of a lease that is counted in `loads` already."""
    messages, size = wants
    safe_messages = safe_bytes = None
    by_messages = by_bytes = None
    for level in chain.deciding:
        load = loads[level]
        if (rate := level.messages_rate) is not None:
            part = _proportional(wants.messages, rate, load.wants.messages)
            if part < messages:
                messages, by_messages = part, level
            safe = min(wants.messages, rate // load.leases)
            safe_messages = safe if safe_messages is None else min(safe, safe_messages)
        if (rate := level.bytes_rate) is not None:
            part = _proportional(wants.bytes, rate, load.wants.bytes)
            if part < size:
                size, by_bytes = part, level
            safe = min(wants.bytes, rate // load.leases)
            safe_bytes = safe if safe_bytes is None else min(safe, safe_bytes)
    return Fair(messages, size, safe_messages, safe_bytes, by_messages, by_bytes, horizon_ns)


def part_for(chain: Chain, wants: Pair, left: Pair, fair: Fair, now: Nanos) -> tuple[Part, Pair]:
    """What a lease may take now, and the least of it that would be of use to its caller."""
    messages = size = 0
    limiting, dimension, mask = None, _MESSAGES, 0
    if wants.messages or not wants.bytes:
        messages = max(0, _units(fair.messages, fair.horizon_ns) - left.messages)
        if messages and fair.by_messages is not None:
            limiting = fair.by_messages
            mask |= lowered(limiting, messages=True, size=False)
    if wants.bytes:
        size = max(0, _units(fair.bytes, fair.horizon_ns) - left.bytes)
        if size and fair.by_bytes is not None:
            limiting, dimension = fair.by_bytes, _BYTES
            mask |= lowered(limiting, messages=False, size=True)
    least = Pair(int(messages > 0 and not left.messages), int(size > 0 and not left.bytes))
    part = lower_part(chain, Part(messages, size, limiting, dimension, mask), now, halves=True)
    if part.messages < least.messages or part.bytes < least.bytes:
        part = part._replace(messages=0, bytes=0)
    return part, least


def lasts_ns(fair: Fair, wants: Pair, held: Pair) -> int:
    """How long amounts last at the lease's part; of two dimensions, the one that ends first."""
    ends = [
        units * PICO // max(1, rate)
        for units, rate, want in zip(held, fair[:2], wants, strict=True)
        if want
    ]
    return min(ends, default=COUNT_MAX)


def _units(rate: int, horizon_ns: int) -> int:
    return max(1, rate * horizon_ns // PICO)


def _at_most(want: int, rate: Rate) -> int:
    return want if rate is None else min(want, rate)


def _proportional(want: int, rate: int, wants: int) -> int:
    """A want as its part of a rate, where all wants together are more than it."""
    want = min(want, rate)
    return want if wants <= rate else want * rate // wants
