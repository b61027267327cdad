"""The rules that a world can be run with: the core's four, and rivals to compare them with."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rgd.core.broker.settings import BrokerSettings
from rgd.core.policies.model import SharePolicyName
from rgd.core.units import Nanos
from sim.member import Brain, CoreBrain
from sim.planes import ApartBrain
from sim.rivals.registry import RIVALS
from sim.shared_work import SharedWork

#: Every name that `--policy` takes.
POLICIES: Final = (*(policy.value for policy in SharePolicyName), *RIVALS)


def maker_of(policy: str, *, are_apart: bool = False) -> Callable[[BrokerSettings, Nanos], Brain]:
    """From a policy's name to what makes brains that follow it; those of the core with gates apart, or not."""
    if policy in RIVALS:
        return RIVALS[policy]
    name, shared = SharePolicyName(policy), SharedWork()
    make = ApartBrain if are_apart else CoreBrain
    return lambda settings, now: make(replace(settings, policy=name), now, shared)
