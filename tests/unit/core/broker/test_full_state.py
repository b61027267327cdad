"""A broker whose state is too large for one report: how it is sent, received, compared and repaired.

Two real brokers, wired by hand. Not covered: any loss (tests/property/test_report_parts.py), the sizes
on the wire (tests/unit/wire/test_report_sizes.py).
"""

from rgd.core.bounds import Bounds, ExchangeBounds
from rgd.core.broker.effects import Alarm
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import ALL_ROWS, Ask, Report, Sender
from rgd.core.exchange.report_parts import ROW_BYTES_MAX
from rgd.core.policies.model import Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from tests.unit.core.broker.own_reader import OwnReader
from tests.unit.core.values import advertised, rates

GROUPS = [f"g{number:02}" for number in range(40)]
SNAPSHOT = PolicySnapshot({name: Group(name, Limit(rates(1000))) for name in GROUPS})


#: Seven rows a part.
BOUNDS = Bounds(exchange=ExchangeBounds(part_bytes_max=7 * (ROW_BYTES_MAX + 3)))


def member(name: str) -> OwnReader:
    """A broker with a policy of each of the forty groups."""
    made = OwnReader(BrokerSettings(Sender(name, 1), expected_brokers=2, bounds=BOUNDS))
    made.change(**dict.fromkeys(GROUPS, 1000.0))
    made.start()
    return made


def pair() -> tuple[OwnReader, OwnReader]:
    """A sender with forty rows, and a receiver that knows none of them; both live."""
    sender, receiver = member("s"), member("r")
    for _ in range(13):
        for one, other in ((sender, receiver), (receiver, sender)):
            other.hear(*one.sent())
        for one in (sender, receiver):
            one.wait(250)
    assert (sender.broker.mode, receiver.broker.mode) == (Mode.LIVE, Mode.LIVE)
    for group in GROUPS:
        sender.ask(5, group)
    for one in (sender, receiver):
        one.wait(850)
        one.effects.clear()
    return sender, receiver


def test_who_asks_is_sent_the_whole_state_in_parts() -> None:
    sender, receiver = pair()
    sender.hear(Ask(Sender("r", 1), "s"))
    sender.wait(600)
    reports = [one for one in sender.sent() if isinstance(one, Report) and one.full]
    assert len(reports) > 5
    assert [report.more for report in reports] == [True] * (len(reports) - 1) + [False]
    assert reports[0].span.begin == 0
    assert reports[-1].span.end == ALL_ROWS.end
    receiver.hear(*reports)
    held = receiver.broker.usage.rows_of("s")
    told = {row.group: row.wanted for row in advertised(sender.broker.rounds)}
    assert {key.group: row.wanted for key, row in held.items()} == told
    # It has found nothing missing.
    assert not any(isinstance(effect, Alarm) for effect in receiver.effects)
    receiver.broker.validate()
