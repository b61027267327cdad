"""A broker among others, with groups of every sort."""

from itertools import cycle

import pytest

from rgd.core.broker.broker import Broker
from rgd.core.broker.events import MessageReceived, PoliciesChanged, Started, Woken
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Attachments, Group, Limit, SharePolicyName
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind, Nanos
from tests.unit.core.values import ms, rates, report, usage

START = Nanos(0)
NAMES = [f"g{number:02}" for number in range(30)]
PEERS = ("b0", "b2", "b3")


@pytest.fixture
def broker() -> Broker:
    """A broker with three peers that have rows of most groups, and some groups in use of its own."""
    broker = Broker(BrokerSettings(Sender("b1", 1)), START)
    policies = cycle([None, *SharePolicyName])
    groups = {
        name: Group(name, Limit(rates(100 + at, None if at % 3 else 1000), rates(7)), policy=policy)
        for at, (name, policy) in enumerate(zip(NAMES, policies, strict=False))
    }
    attach = Attachments(namespaces={f"acme/n{at}": NAMES[at % 7] for at in range(100)})
    broker.handle(PoliciesChanged(START, PolicySnapshot(groups, attach)))
    broker.handle(Started(START))
    for number, peer in enumerate(PEERS):
        rows = [
            usage(10 * number + at, 5, group=name, kind=kind, size=at, topics=number + 1)
            for at, name in enumerate(NAMES[number:25])
            for kind in list(Kind)[: 1 + at % 2]
        ]
        broker.handle(MessageReceived(ms(10), report(peer, *rows, full=True)))
    for name in NAMES[5:]:
        broker.limiter.acquire(Request(group=name), ms(20))
    for at in range(100, 4100, 10):
        broker.handle(Woken(ms(at)))
    return broker
