"""Settles a grant after the fact: units that were not used go back, units used beyond it are charged.

Laws:

- A name gives back at most what it was granted lately and has not given back (`Unsettled`), and no
  bucket ever holds more than its depth. So the net use of a name keeps every bound of its grants.
- A charge after the fact leaves no level deeper in debt than its largest request could.
- Whoever gives back a part of a grant needed no more of that dimension: what the grant refused of
  it is no demand. That is the name's last grant, if another one followed meanwhile.
- A shadow level gets nothing back, because it is unknown whether it was charged.

Grants of a name for dispatch are counted from the start. Publishing settles rarely, and counting
would cost the fast path of a grant some percent, so its grants are counted from the name's first
settlement on, which can give back the last grant if that was in the last `RECENT_NS`: of an array
what it granted the name together, where it was granted as a whole.
"""

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.chain import Chain, Unmet
from rgd.core.buckets.charge import charge, put_back
from rgd.core.policies.model import Rate
from rgd.core.units import Nanos, Pair


def settle(chain: Chain, topic: str | None, unused: Pair, now: Nanos) -> Pair:
    """Give back what a name did not use, or charge what it used beyond its grants.

    Args:
        chain: the name's levels, up to date.
        topic: the name's topic.
        unused: whole units; below 0 what was used beyond the grants.
        now: the current time.

    Returns:
        What was given back; below 0 what was charged.
    """
    unsettled = chain.unsettled or chain.begin_settling(now)
    back = unsettled.take(max(0, unused.messages), max(0, unused.bytes), now)
    if any(back):
        _give_back(chain, back, now)
    more = _chargeable(chain, Pair(max(0, -unused.messages), max(0, -unused.bytes)), now)
    if any(more):
        charge(chain, *more, topic, 1, now, requests=0)
    return Pair(back.messages - more.messages, back.bytes - more.bytes)


def _give_back(chain: Chain, back: Pair, now: Nanos) -> None:
    put_back(chain, back, now)
    left: list[Unmet] = []
    for group, messages, size, attempt in chain.unmet:
        more = (messages if back.messages else 0, size if back.bytes else 0)
        group.counters.retract(*more, attempt)
        for part in chain.parts:
            if part.group == group.group:
                part.retract(*more)
        left.append((group, messages - more[0], size - more[1], attempt))
    chain.unmet = left


def _chargeable(chain: Chain, more: Pair, now: Nanos) -> Pair:
    """The part of an amount that leaves no level owing more than its largest request."""
    messages, size = more
    for level in chain.deciding:
        level.refill(now)
        # A quota of 0 has no largest request: nothing was granted, and its debt would never end.
        most_messages = level.most_messages if level.quota.messages != 0 else 0
        most_bytes = level.most_bytes if level.quota.bytes != 0 else 0
        messages = _within(messages, level.messages_rate, level.messages_tokens, most_messages)
        size = _within(size, level.bytes_rate, level.bytes_tokens, most_bytes)
    return Pair(messages, size)


def _within(units: int, rate: Rate, tokens: int, most: int) -> int:
    return units if rate is None else min(units, max(0, most + tokens // PICO))
