"""Whether a daemon should get traffic, and what works less well than it should.

Law: while the exchange cannot be reached the daemon stays ready: an outage of
Pulsar must not take every local endpoint away.
"""

from rgd.core.broker.broker import Broker
from rgd.core.broker.mode import Mode
from rgd.core.policies.model import OnUnknown
from rgd.ports.answers import Health


def never_reached(broker: Broker) -> bool:
    """Whether it grants from the floor because it waited for the exchange in vain since its start."""
    return broker.mode is Mode.STARTING and broker.is_past_start and not broker.resumes


def health(broker: Broker, *, is_draining: bool, notes: tuple[str, ...]) -> Health:
    """Whether shares are known, and what is degraded."""
    if is_draining:
        return Health(ready=False, degraded=("draining", *notes))
    degraded = list(notes)
    unknown = broker.unknown
    if unknown is not None:
        told = "refused" if unknown is OnUnknown.DENY else "granted"
        degraded.insert(0, f"no policies are known: every request is {told} (policies.unknown)")
    if broker.own_name.trouble is not None:
        taken = f"name conflict: {broker.own_name.trouble}; granting from the floor until it ends"
        return Health(ready=False, degraded=(taken, *degraded))
    if broker.mode.is_isolated:
        degraded.append(f"exchange unreachable: {broker.mode} shares")
    if broker.membership.differing:
        names = ", ".join(sorted(broker.membership.differing))
        degraded.append(f"policies differ from those of {names}")
    if not broker.is_past_start:
        return Health(ready=False, degraded=("starting: shares are not known yet", *degraded))
    if never_reached(broker):
        degraded.append("exchange never reached: granting from the floor")
    return Health(ready=unknown is not OnUnknown.DENY, degraded=tuple(degraded))
