"""From the usage map to the share in force, in every mode.

Not covered: when the mode changes (test_exchange_state.py), what a policy does (tests/unit/core/shares),
any sequence of targets (tests/property/test_damping.py), who has which index (test_broker_index.py).
"""

from dataclasses import replace

from rgd.core.broker.mode import Mode
from rgd.core.policies.model import BLOCKED, UNLIMITED
from tests.unit.core.broker.sharing_house import House
from tests.unit.core.values import key

# Live: the usage map.


# The other modes.


def test_cut_off_and_open_nothing_is_limited_but_what_is_blocked(house: House) -> None:
    house.sharing.mode = Mode.OPEN
    assert house.use(100, 100) == UNLIMITED
    house.change(replace(house.quota(), blocked=True))
    assert house.applied[-1][:2] == (key(), BLOCKED)
