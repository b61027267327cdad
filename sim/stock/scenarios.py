"""What happens in a cluster of stock brokers and rgd daemons, as data.

A scenario is steps; each lasts long enough for stock brokers to settle. Demand is told in even parts
of the quota (quota / all brokers), so a scenario means the same in any size of cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

#: Demand of a broker in even parts of the quota, by its index among its kind.
Demand = Callable[[int], float]


def everyone(parts: float) -> Demand:
    """The same demand for all."""
    return lambda _index: parts


def first(parts: float, others: float) -> Demand:
    """The first one's demand, and that of the others."""
    return lambda index: others if index else parts


@dataclass(frozen=True, slots=True)
class Step:
    """What holds from a moment on."""

    stock: Demand
    rgd: Demand
    #: The quota, by that at the start.
    quota: float = 1.0
    #: The last broker of a kind crashes at the beginning.
    stock_crashes: bool = False
    rgd_crashes: bool = False
    #: Another broker of a kind joins.
    stock_joins: bool = False
    rgd_joins: bool = False


@dataclass(frozen=True, slots=True)
class StockScenario:
    """Steps, and what of them rgd can reach."""

    name: str
    title: str
    steps: tuple[Step, ...]
    #: Why the bounds do not hold in it; "" where they do.
    out_of_reach: str = ""
    #: The same, with several stock brokers only.
    out_of_reach_many: str = ""
    #: The least number of brokers of each kind.
    stock_least: int = 1
    rgd_least: int = 1

    def reason(self, stock: int) -> str:
        """Why the bounds do not hold with so many stock brokers; "" where they do."""
        return self.out_of_reach or (self.out_of_reach_many if stock > 1 else "")


_TRAP: Final = (
    "stock brokers that wake together trap one another: the first report finds others idle"
)

_BUSY: Final = everyone(3.0)
_IDLE: Final = everyone(0.0)

_ALL: Final = (
    StockScenario("saturated", "everybody wants more than there is", (Step(_BUSY, _BUSY),)),
    StockScenario(
        "stock-wakes",
        "rgd is saturated, stock brokers are idle and then saturated",
        (Step(_IDLE, _BUSY), Step(_BUSY, _BUSY)),
        out_of_reach_many=_TRAP,
    ),
    StockScenario(
        "rgd-wakes",
        "stock brokers are saturated, rgd is idle and then saturated",
        (Step(_BUSY, _IDLE), Step(_BUSY, _BUSY)),
    ),
    StockScenario(
        "stock-sleeps",
        "everybody is saturated, then stock brokers are idle, then saturated again",
        (Step(_BUSY, _BUSY), Step(_IDLE, _BUSY), Step(_BUSY, _BUSY)),
        out_of_reach_many=_TRAP,
    ),
    StockScenario(
        "rgd-sleeps",
        "everybody is saturated, then rgd is idle",
        (Step(_BUSY, _BUSY), Step(_BUSY, _IDLE)),
    ),
    StockScenario(
        "ninety-ten",
        "stock brokers use nine tenths, then everybody is saturated; and the other way round",
        (
            Step(everyone(0.9), everyone(0.1)),
            Step(_BUSY, _BUSY),
            Step(everyone(0.1), _BUSY),
            Step(_BUSY, _BUSY),
        ),
    ),
    StockScenario(
        "small-stock",
        "stock brokers want half of their part, rgd is saturated",
        (Step(everyone(0.5), _BUSY), Step(everyone(0.8), _BUSY)),
    ),
    StockScenario(
        "small-rgd",
        "rgd wants half of its part, stock brokers are saturated",
        (Step(_BUSY, everyone(0.5)), Step(_BUSY, everyone(0.8))),
    ),
    StockScenario(
        "spare",
        "there is enough for all",
        (Step(everyone(0.5), everyone(0.5)), Step(everyone(0.9), everyone(0.9))),
    ),
    StockScenario(
        "quota",
        "the quota is halved under saturation, and then doubled",
        (Step(_BUSY, _BUSY), Step(_BUSY, _BUSY, quota=0.5), Step(_BUSY, _BUSY)),
    ),
    StockScenario(
        "rgd-crash",
        "an rgd daemon is killed under saturation",
        (Step(_BUSY, _BUSY), Step(_BUSY, _BUSY, rgd_crashes=True)),
        rgd_least=2,
    ),
    StockScenario(
        "rgd-joins",
        "one more rgd daemon starts under saturation",
        (Step(_BUSY, _BUSY), Step(_BUSY, _BUSY, rgd_joins=True)),
    ),
    StockScenario(
        "stock-crash",
        "a stock broker is killed under saturation; the admin API lists it no longer",
        (Step(_BUSY, _BUSY), Step(_BUSY, _BUSY, stock_crashes=True)),
        stock_least=2,
    ),
    StockScenario(
        "stock-joins",
        "one more stock broker starts under saturation",
        (Step(_BUSY, _BUSY), Step(_BUSY, _BUSY, stock_joins=True)),
        out_of_reach="the newcomer is in Pulsar's idle trap, which the other stock brokers hold shut",
    ),
    StockScenario(
        "uneven-rgd",
        "one rgd daemon wants little, everybody else is saturated",
        (Step(_BUSY, first(0.3, 3.0)),),
        rgd_least=2,
    ),
    StockScenario(
        "uneven-stock",
        "one stock broker wants little, everybody else is saturated",
        (Step(first(0.3, 3.0), _BUSY),),
        out_of_reach="only the sum is led: the others use what the small one leaves",
        stock_least=2,
    ),
    StockScenario(
        "one-stock-wakes",
        "one stock broker is idle while all others are saturated, and then wakes",
        (Step(first(0.0, 3.0), _BUSY), Step(_BUSY, _BUSY)),
        out_of_reach="the one that wakes is in Pulsar's idle trap, which the others hold shut",
        stock_least=2,
    ),
)

SCENARIOS: Final = MappingProxyType({scenario.name: scenario for scenario in _ALL})
