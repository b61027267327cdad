"""A token bucket at its edges, to the token.

Not covered: any interleaving of takes and changes of rate (tests/property/test_bucket.py).
"""

from rgd.core.buckets.bucket import PICO, TokenBucket
from rgd.core.units import MILLI, NS_PER_S, Nanos
from tests.unit.core.values import ms

RATE = 100 * MILLI
BURST_NS = 250_000_000


def bucket(rate: int = RATE, burst_ns: int = BURST_NS) -> TokenBucket:
    return TokenBucket(rate, burst_ns, Nanos(0))


def test_a_bucket_starts_full_and_fills_no_further() -> None:
    assert bucket().tokens(Nanos(0)) == 25 * PICO
    assert bucket().tokens(ms(5000)) == 25 * PICO


def test_tokens_flow_at_the_rate() -> None:
    one = bucket()
    one.take(25 * PICO)
    assert one.tokens(ms(100)) == 10 * PICO
    assert one.tokens(Nanos(100_000_001)) == 10 * PICO + RATE


def test_time_that_runs_backwards_gives_and_takes_nothing() -> None:
    one = TokenBucket(RATE, BURST_NS, ms(1000))
    one.take(25 * PICO)
    assert one.tokens(ms(500)) == 0
    assert one.tokens(ms(1100)) == 10 * PICO


def test_exactly_what_is_there_is_granted() -> None:
    one = bucket()
    one.take(PICO)
    assert one.admits(24 * PICO, Nanos(0))
    assert not one.admits(24 * PICO + 1, Nanos(0))


def test_more_than_the_depth_is_granted_from_a_full_bucket_on_debt() -> None:
    one = bucket()
    assert one.admits(1000 * PICO, Nanos(0))
    one.take(1000 * PICO)
    assert one.tokens(Nanos(0)) == -975 * PICO
    # The debt of 975 and then the depth of 25: ten seconds.
    assert one.wait_ns(1000 * PICO, Nanos(0)) == 10 * NS_PER_S
    assert one.wait_ns(PICO, Nanos(0)) == 976 * NS_PER_S // 100


def test_nothing_waits_for_what_is_there() -> None:
    assert bucket().wait_ns(PICO, Nanos(0)) == 0


def test_a_wait_is_rounded_up() -> None:
    one = bucket(rate=3)
    one.take(3 * BURST_NS)
    assert one.wait_ns(4, Nanos(0)) == 2


def test_a_part_is_whole_units() -> None:
    one = bucket()
    one.take(22 * PICO + 1)
    assert one.available(Nanos(0)) == 2


def test_a_part_of_a_bucket_in_debt_is_nothing() -> None:
    one = bucket()
    one.take(30 * PICO)
    assert one.available(Nanos(0)) == 0


def test_a_cut_takes_the_tokens_above_the_new_depth_and_a_raise_gives_none() -> None:
    one = bucket()
    one.set_rate(RATE // 5, BURST_NS, Nanos(0))
    assert one.tokens(Nanos(0)) == 5 * PICO
    one.set_rate(RATE, BURST_NS, Nanos(0))
    assert one.tokens(Nanos(0)) == 5 * PICO


def test_a_new_rate_counts_from_its_own_moment() -> None:
    one = bucket()
    one.take(25 * PICO)
    one.set_rate(2 * RATE, BURST_NS, ms(100))
    assert one.rate == 2 * RATE
    assert one.tokens(ms(200)) == 10 * PICO + 20 * PICO


def test_without_depth_one_request_at_a_time_is_granted_on_debt() -> None:
    one = bucket(burst_ns=0)
    assert one.admits(PICO, Nanos(0))
    assert one.available(Nanos(0)) == 1
    one.take(PICO)
    assert not one.admits(PICO, ms(9))
    assert one.available(ms(9)) == 0
    assert one.admits(PICO, ms(10))


def test_a_block_forgets_the_tokens_and_keeps_the_debt() -> None:
    full, owing = bucket(), bucket()
    owing.take(30 * PICO)
    for one in (full, owing):
        one.set_rate(0, BURST_NS, Nanos(0))
        one.set_rate(RATE, BURST_NS, ms(1000))
    assert full.tokens(ms(1000)) == 0
    assert owing.tokens(ms(1000)) == -5 * PICO
