"""Shards at one broker: joining, asking, what counts and what is refused, and members of the release before.

Not covered: several brokers (tests/simulation/test_shards.py) and topics (tests/contract/exchange/test_shards.py).
"""

from dataclasses import replace

import pytest

from rgd.core.broker.effects import Alarm, AlarmCode, Listen, Publish
from rgd.core.broker.events import ShardOpened
from rgd.core.broker.mode import Mode
from rgd.core.broker.shard_shares import Phase
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Ask, Claim, Report, Sender
from rgd.core.exchange.shards import WHOLE, Shard, shard_of
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import ME, Desk, Effects, gold
from tests.unit.core.values import key, ms, rates, report, usage


def phase(desk: Desk) -> Phase:
    return desk.broker.shard_reader.joined[OF_GOLD.number].phase


OF_GOLD = shard_of("gold", 4)
ELSEWHERE = next(f"g{place}" for place in range(99) if shard_of(f"g{place}", 4) != OF_GOLD)
PEER = Sender("b2", 1)


def heartbeat(sequence: int, *sequences: int, shards: int = 4) -> Report:
    """A peer's report on the exchange's topic, which says what it sent in each shard."""
    said = (tuple(sequences),) if sequences else ()
    return Report(PEER, sequence, 10**9, shards=shards, shard_sequences=said)


def in_shard(report_: Report, shard: Shard = OF_GOLD) -> Report:
    return replace(report_, shard=shard)


def said_of_gold(sequence: int) -> tuple[int, ...]:
    return tuple(sequence if number == OF_GOLD.number else 0 for number in range(4))


def asks(effects: Effects) -> list[Ask]:
    said = [effect.message for effect in effects if isinstance(effect, Publish)]
    return [message for message in said if isinstance(message, Ask)]


def join(desk: Desk, at: float) -> None:
    """Let it read the shard of gold, and its own report of it; 280 ms go by."""
    desk.ask(5, at)
    effects = desk.wake(at + 10)
    assert Listen(frozenset({OF_GOLD})) in effects
    opened = desk.handle(ShardOpened(ms(at + 20), OF_GOLD))
    assert asks(opened) == [Ask(ME, "b1", shard=OF_GOLD)]
    desk.run(at + 20, at + 280)


@pytest.fixture
def joined(seat: Seat) -> Desk:
    """A live broker with the peer b2 that reads the shard of gold; it is 2300 ms old."""
    desk = seat(shards=4)
    desk.go_live()
    desk.hear(heartbeat(1, *said_of_gold(0)), 2010)
    join(desk, 2020)
    return desk


def test_another_hash_is_asked_about(joined: Desk) -> None:
    joined.hear(heartbeat(2, *said_of_gold(0)), 2310)
    effects = joined.hear(in_shard(report("b2", usage(20), rows_hash=7)), 3100)
    assert asks(effects) == [Ask(ME, "b2", shard=OF_GOLD)]


def test_a_report_of_no_member_or_another_incarnation_does_not_count(joined: Desk) -> None:
    for stranger in (report("b3", usage(9)), report("b2", usage(9), incarnation=5)):
        assert joined.hear(in_shard(stranger), 2310) == ()
    assert not joined.broker.usage.rows_of("b2")
    assert joined.broker.peers.names() == ["b2"]


def test_a_group_of_another_shard_is_dropped() -> None:
    usage_map = UsageMap()
    usage_map.apply(in_shard(report("b2", usage(20), usage(5, group=ELSEWHERE), full=True)))
    assert set(usage_map.rows_of("b2")) == {key()}
    assert usage_map.is_partial("b2", OF_GOLD)
    assert not usage_map.is_partial("b2", shard_of(ELSEWHERE, 4))
    usage_map.apply(in_shard(report("b2", usage(7, group=ELSEWHERE)), shard_of(ELSEWHERE, 4)))
    assert usage_map.count_of("b2") == 2
    usage_map.validate()
    usage_map.remove_shard("b2", OF_GOLD)
    assert set(usage_map.rows_of("b2")) == {key(ELSEWHERE)}


def test_wrong_sequences_of_64_shards_in_heartbeats_cost_a_request_a_round(joined: Desk) -> None:
    asked = 0
    for step in range(40):
        lie = (1 << 62) + step * (1 << 40)
        of_all = heartbeat(2 + step, *[lie] * 64, shards=64)
        both = replace(of_all, shard_sequences=((lie,) * 64, (lie,) * 4), shards=4)
        asked += len(asks(joined.hear(both, 2310 + 100 * step)))
    read = joined.broker.shard_reader.joined
    assert 1 <= asked <= 4
    assert set(read) == {OF_GOLD.number}
    assert len(read[OF_GOLD.number].missing) <= 1


def test_a_shard_that_stays_unreached_gives_equal_parts(seat: Seat) -> None:
    desk = seat(shards=4, expected_brokers=4)
    desk.go_live()
    assert desk.share().messages == 250
    desk.wake(2030)
    desk.run(2030, 4100)
    assert phase(desk) is Phase.CUT_OFF
    assert desk.share().messages == 25_000


def refused_row(sequence: int) -> Report:
    """A report in the shard of gold with a row that is not kept."""
    return in_shard(report("b2", usage(20), usage(5, group=ELSEWHERE), sequence=sequence))


def test_rows_that_are_not_kept_are_asked_for_again_with_other_policies(joined: Desk) -> None:
    effects = joined.hear(refused_row(1), 3100)
    assert effects == (Alarm(AlarmCode.PEER_ROWS_REFUSED, "b2"),)
    assert joined.hear(heartbeat(2, *said_of_gold(1)), 4200) == ()
    joined.change(gold(50), 4300)
    assert asks(joined.hear(heartbeat(3, *said_of_gold(1)), 4400)) == [Ask(ME, "b2", shard=OF_GOLD)]
    assert asks(joined.hear(refused_row(2), 5500)) == []


def test_rows_that_are_not_kept_delay_no_other_shard(joined: Desk) -> None:
    joined.hear(refused_row(1), 2900)
    apart, shard = Group(ELSEWHERE, Limit(rates(100))), shard_of(ELSEWHERE, 4)
    joined.change(PolicySnapshot({**gold().groups, ELSEWHERE: apart}), 2910)
    joined.broker.limiter.acquire(Request(group=ELSEWHERE), ms(2920))
    joined.wake(2930)
    joined.handle(ShardOpened(ms(2940), shard))
    for sequence, now in ((1, 4000), (2, 5100)):
        lost = report("b2", usage(7, group=ELSEWHERE), rows_hash=7, sequence=sequence)
        effects = joined.hear(in_shard(lost, shard), now)
        assert asks(effects) == [Ask(ME, "b2", shard=shard)]


@pytest.mark.parametrize("joined_at", [20, 2100], ids=["starting", "live"])
@pytest.mark.parametrize("still_ms", [2500, 10_000])
def test_after_a_stand_still_rows_are_asked_for_and_waited_for_again(
    seat: Seat, joined_at: float, still_ms: float
) -> None:
    desk = seat(shards=4, expected_brokers=3)
    desk.start()
    desk.read_back(5)
    desk.hear(heartbeat(1, *said_of_gold(0)), 10)
    desk.run(10, joined_at)
    join(desk, joined_at)
    thawed = joined_at + 280 + still_ms
    assert Ask(ME, "b1", shard=OF_GOLD) in asks(desk.wake(thawed))
    desk.read_back(thawed + 5)
    desk.run(thawed + 5, thawed + 2000)
    assert phase(desk) is not Phase.WARM
    desk.run(thawed + 2000, thawed + 2005)
    assert phase(desk) is Phase.WARM
    assert Ask(ME, "b1", shard=OF_GOLD) not in asks(desk.wake(thawed + 4500))


def test_a_dead_shard_is_cut_off_though_the_exchange_comes_and_goes(joined: Desk) -> None:
    joined.run(2300, 4100)
    for now in range(4100, 11_000, 100):
        joined.wake(now)
        if now % 2500 == 0:
            joined.said = [one for one in joined.said if getattr(one, "shard", WHOLE) == WHOLE]
            joined.read_back(now)
    assert phase(joined) is Phase.CUT_OFF


def test_a_stand_still_of_the_expiry_rounds_is_enough_to_be_dropped(joined: Desk) -> None:
    joined.read_back(2310)
    joined.wake(2320)
    # Its last message may be older than the stand-still.
    joined.wake(2320 + 3050)
    assert joined.believes() is Mode.REJOINING


def test_who_lost_its_name_asks_for_nothing_after_a_stand_still(joined: Desk) -> None:
    joined.hear(replace(report("b1"), sender=Sender("b1", 0), claim=Claim.HELD, rival=1), 2310)
    assert joined.believes() is Mode.YIELDING
    assert asks(joined.wake(4000)) == []
