"""`brokers/configuration`: of Pulsar's dynamic configuration the limit of all that a broker dispatches.

Laws: a setting changes one dimension of the broker's dispatch limit (`limits.broker` of a groups file), and
leaves the other and publishing alone, also where two daemons write at once. Each broker is held to it by
itself, as in Pulsar. What is not positive is no limit, and is not shown.

Pulsar takes any text for a number and passes over what is none; here it is refused.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rgd.adapters.http.endpoint import change, read
from rgd.adapters.http.errors import BadBody, CallError
from rgd.adapters.http.pulsar_admin.jackson import INT32_MAX, INT64_MAX, integer
from rgd.adapters.http.pulsar_admin.rate_forms import rate_over, units_over
from rgd.adapters.http.reply import Call, Reply, json_reply
from rgd.core.policies.model import NOT_SET, UNLIMITED, LocalLimit, Rate
from rgd.core.policies.records import LIMIT_BROKER, Value
from rgd.core.units import Dimension
from rgd.ports.daemon import Daemon

_PATH: Final = "/admin/v2/brokers/configuration"

#: The settings, what each limits, and the largest value that Pulsar reads.
SETTINGS: Final[Mapping[str, tuple[Dimension, int]]] = {
    "dispatchThrottlingRateInMsg": (Dimension.MESSAGES, INT32_MAX),
    "dispatchThrottlingRateInByte": (Dimension.BYTES, INT64_MAX),
}

#: Pulsar answers a change with 200 and nothing.
_CHANGED: Final = Reply()


class DynamicConfigCalls:
    """Lists, shows, sets and takes away settings."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @read(_PATH, list[str])
    async def names(self, _call: Call) -> Reply:
        """Settings of the broker that may be changed."""
        return json_reply(list(SETTINGS))

    @read(f"{_PATH}/values", dict[str, str])
    async def values(self, _call: Call) -> Reply:
        """Settings of the broker that are set, as text."""
        return json_reply(values_of(self._daemon.snapshot().limits.broker))

    @change("POST", f"{_PATH}/{{name}}/{{value}}", 409, 412, shown=str)
    async def put(self, call: Call) -> Reply:
        """Set a setting of every broker."""
        name = call.path["name"]
        if name not in SETTINGS:
            raise CallError(412, "Can't update non-dynamic configuration")
        _, most = SETTINGS[name]
        units = integer(call.path["value"], name, most)
        if units is None:
            raise BadBody(f"{name}: expected an integer from {-most - 1} to {most}, got nothing")
        await self._change(name, rate_over(units))
        return _CHANGED

    @change("DELETE", f"{_PATH}/{{name}}", 409, 412, shown=str)
    async def delete(self, call: Call) -> Reply:
        """Take away a setting of every broker, set or not."""
        name = call.path["name"]
        if name not in SETTINGS:
            raise CallError(412, "Can't delete non-dynamic configuration")
        await self._change(name, None)
        return _CHANGED

    async def _change(self, name: str, rate: Rate) -> None:
        dimension, _ = SETTINGS[name]

        def merge(known: Value) -> Value:
            limit = known if isinstance(known, LocalLimit) else NOT_SET
            before = limit.dispatch or UNLIMITED
            rates = before._replace(**{dimension: rate})
            dispatch = None if rates.is_unlimited else rates
            # A broker's rate is per second, and relative to nothing.
            limit = replace(NOT_SET, publish=limit.publish, dispatch=dispatch)
            return None if limit == NOT_SET else limit

        await self._daemon.change(LIMIT_BROKER, merge)


def values_of(limit: LocalLimit) -> dict[str, str]:
    """The settings that a broker's limit is."""
    rates = limit.dispatch or UNLIMITED
    return {
        name: str(min(units_over(rate), most))
        for name, (dimension, most) in SETTINGS.items()
        if (rate := rates.of(dimension)) is not None
    }
