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


def test_a_bucket_starts_full_and_fills_no_further() -> None:
    assert tokens(bucket(), START) == 25 * PICO
    assert tokens(bucket(), ms(5000)) == 25 * PICO


def test_tokens_flow_at_the_rate() -> None:
    one = bucket()
    one.take(25, 0)
    assert tokens(one, ms(100)) == 10 * PICO
    assert tokens(one, Nanos(100_000_001)) == 10 * PICO + RATE


def test_more_than_the_depth_is_granted_from_a_full_bucket_on_debt() -> None:
    one = bucket()
    assert one.admits(1000 * PICO, 0, START)
    one.take(1000, 0)
    assert tokens(one, START) == -975 * PICO


def test_a_part_of_a_bucket_in_debt_is_nothing() -> None:
    one = bucket()
    one.take(30, 0)
    assert one.available(START)[0] == 0


def test_a_decrease_takes_the_tokens_above_the_new_depth_and_an_increase_gives_none() -> None:
    one = bucket()
    one.flow(Rates(RATE // 5), START)
    assert tokens(one, START) == 5 * PICO
    one.flow(Rates(RATE), START)
    assert tokens(one, START) == 5 * PICO


def test_a_new_rate_counts_from_its_own_moment() -> None:
    one = bucket()
    one.take(25, 0)
    one.flow(Rates(2 * RATE), ms(100))
    assert one.share == Rates(2 * RATE)
    assert tokens(one, ms(200)) == 10 * PICO + 20 * PICO


def test_without_depth_one_request_at_a_time_is_granted_on_debt() -> None:
    one = bucket(burst_ns=0)
    assert one.admits(PICO, 0, START)
    assert one.available(START)[0] == 1
    one.take(1, 0)
    assert not one.admits(PICO, 0, ms(9))
    assert one.available(ms(9))[0] == 0
    assert one.admits(PICO, 0, ms(10))


def test_a_block_forgets_the_tokens_and_keeps_the_debt() -> None:
    full, owing = bucket(), bucket()
    owing.take(30, 0)
    for one in (full, owing):
        one.flow(Rates(0), START)
        one.flow(Rates(RATE), ms(1000))
    assert tokens(full, ms(1000)) == 0
    assert tokens(owing, ms(1000)) == -5 * PICO


def test_nothing_flows_in_time_that_is_skipped() -> None:
    one = bucket()
    one.take(25, 0)
    one.skip(ms(600))
    assert tokens(one, ms(700)) == 10 * PICO
