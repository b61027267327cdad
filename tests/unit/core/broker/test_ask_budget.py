"""How many asks a round has, and who gets them."""

from dataclasses import replace

from rgd.core.broker.ask_budget import ASKS_A_ROUND, AskBudget
from rgd.core.broker.events import ShardOpened
from rgd.core.exchange.messages import Ask, Sender
from rgd.core.exchange.shards import Shard
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import Desk
from tests.unit.core.values import ms, report, usage

ROUND_NS = 1_000_000_000
SHARDS = 64


def test_a_round_has_so_many_asks_and_the_next_one_as_many() -> None:
    budget = AskBudget(ROUND_NS)
    for at in (0, 1000, 2500):
        asked = [budget.take("b2", ms(at + step)) for step in range(ASKS_A_ROUND + 50)]
        assert sum(asked) == ASKS_A_ROUND


def test_who_had_to_wait_is_asked_in_the_next_round_whatever_others_claim() -> None:
    budget = AskBudget(ROUND_NS)
    for _ in range(SHARDS * 10):
        budget.take("made up", ms(0))
    assert not budget.take("real", ms(1))
    for _ in range(SHARDS * 10):
        budget.take("made up", ms(1000))
    assert budget.take("real", ms(1001))
    assert not budget.take("real", ms(1002))


def test_a_broker_that_left_is_kept_no_ask_for() -> None:
    budget = AskBudget(ROUND_NS)
    for _ in range(ASKS_A_ROUND):
        budget.take("b2", ms(0))
    assert not budget.take("b3", ms(1))
    budget.forget("b3")
    assert [budget.take("b2", ms(1000)) for _ in range(ASKS_A_ROUND)] == [True] * ASKS_A_ROUND


def asks(desk: Desk) -> int:
    return sum(isinstance(message, Ask) for message in desk.said)


def test_members_that_claim_reports_in_64_shards_cause_no_more_asks(seat: Seat) -> None:
    desk = seat(shards=SHARDS)
    desk.go_live()
    desk.broker.shard_reader.use(range(SHARDS), ms(2010))
    desk.wake(2011)
    for number in range(SHARDS):
        desk.handle(ShardOpened(ms(2012), Shard(number, SHARDS)))
    desk.said.clear()
    # In the first round they claim it, in the second it is missing, and is asked for once it has waited.
    for turn in (1, 2, 3):
        for number in range(10):
            claims = replace(
                report("", usage(1)),
                sender=Sender(f"made-up-{number}", 1),
                sequence=turn,
                shards=SHARDS,
                shard_sequences=((5 + turn,) * SHARDS,),
            )
            desk.hear(claims, 2000 + 300 * turn)
    assert asks(desk) == ASKS_A_ROUND
