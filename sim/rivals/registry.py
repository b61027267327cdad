"""Finds a rival by the name that `--policy` knows it by."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from rgd.core.broker.settings import BrokerSettings
from rgd.core.units import Nanos
from sim.rivals.fps import QUICK_ALPHA, FlowShare
from sim.rivals.pulsar_shipped import PulsarShipped
from sim.rivals.rival import Rival

#: From settings and the moment to a brain, as `sim.world.World` wants it.
RIVALS: Final[Mapping[str, Callable[[BrokerSettings, Nanos], Rival]]] = MappingProxyType(
    {
        "pulsar-shipped": PulsarShipped,
        "fps": FlowShare,
        "fps-0.5": partial(FlowShare, alpha=QUICK_ALPHA),
    }
)
