"""A pair of token buckets at its edges, to the token.

Not covered: any interleaving of takes and rate changes (tests/property/test_bucket.py).
"""

from rgd.core.buckets.bucket import PICO, Buckets
from rgd.core.policies.model import Rates
from rgd.core.units import MILLI, Dimension, Nanos
from tests.unit.core.values import ms

RATE = 100 * MILLI
BURST_NS = 250_000_000
START = Nanos(0)


def bucket(rate: int = RATE, burst_ns: int = BURST_NS, now: Nanos = START) -> Buckets:
    one = Buckets(burst_ns, now)
    one.flow(Rates(rate), now)
    return one


def tokens(one: Buckets, now: Nanos) -> int:
    left = one.tokens(Dimension.MESSAGES, now)
    assert left is not None
    return left


def test_nothing_flows_in_time_that_is_skipped() -> None:
    one = bucket()
    one.take(25, 0)
    one.skip(ms(600))
    assert tokens(one, ms(700)) == 10 * PICO
