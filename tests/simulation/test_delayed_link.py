"""A link that delays everything and then lets all of it go at once: a few lines, and no flood of hellos.

Not covered: one broker on such a link, step by step.
"""

import pytest

from rgd.core.broker.effects import AlarmCode
from rgd.core.exchange.messages import Hello, Message
from rgd.core.units import NS_PER_S
from sim.network import Network
from tests.simulation.worlds import Cluster

pytestmark = pytest.mark.slow

QUOTA = 300.0


@pytest.mark.parametrize(("delay_s", "hold_rounds"), [(3, 2), (20, 2), (20, 30)])
def test_a_link_that_is_delayed_and_drains_is_lost_once_and_back_once(
    delay_s: int, hold_rounds: int
) -> None:
    # On a topic messages stay in order.
    cluster = Cluster([QUOTA] * 3, quota=QUOTA, network=Network(is_ordered=True))
    cluster.settings = type(cluster.settings)(
        cluster.settings.sender, isolation_hold_rounds=hold_rounds, expiry_rounds=40
    )
    name = cluster.add(QUOTA).name
    cluster.run_s(6)
    said: list[Message] = []
    broadcast = cluster.world.broadcast

    def listening(sender: str, message: Message) -> None:
        if sender == name:
            said.append(message)
        broadcast(sender, message)

    cluster.world.broadcast = listening  # type: ignore[method-assign]
    member = cluster.members[3]
    begin = len(member.alarms)
    # What is said in so many seconds arrives together, at their end.
    for place in range(delay_s * 20):
        cluster.world.network.slow_ns[name] = delay_s * NS_PER_S - place * NS_PER_S // 20
        cluster.run_s(0.05)
    cluster.world.network.slow_ns.clear()
    cluster.run_s(5)
    codes = [alarm.code for alarm in member.alarms[begin:]]
    assert codes.count(AlarmCode.ISOLATED) == 1
    assert codes.count(AlarmCode.REJOINED) == 1
    assert sum(isinstance(message, Hello) for message in said) <= 2
    cluster.run_s(3)
    assert cluster.agrees()
