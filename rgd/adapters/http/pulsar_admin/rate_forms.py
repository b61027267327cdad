"""Pulsar's DispatchRate and PublishRate, and the limits that they are here.

Law: what is put is shown again: whole rates over a period of at most 1000 seconds come back exactly
(both ways are rounded so that a limit never grows). One spelling for what Pulsar keeps as it was put:
an unlimited rate is -1, a period of less than a second 1.

A form says how one kind of a `LocalLimit` is read, shown and taken away; the other kind is left alone.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.pulsar_admin.bodies import (
    DispatchRate,
    DispatchRateBody,
    PublishRate,
    PublishRateBody,
)
from rgd.adapters.http.pulsar_admin.jackson import INT32_MAX, INT64_MAX, flag, integer
from rgd.adapters.http.strict import BodyDecoder
from rgd.core.policies.model import NOT_SET, LocalLimit, Rate, Rates
from rgd.core.units import MILLI, QUOTA_MAX

#: What Pulsar answers for a rate that nobody set.
UNLIMITED: Final = -1

_DISPATCH_MESSAGES: Final = "dispatchThrottlingRateInMsg"
_DISPATCH_BYTES: Final = "dispatchThrottlingRateInByte"

#: Makes a limit of the one that was.
Edit = Callable[[LocalLimit], LocalLimit]

_dispatch_body = BodyDecoder(DispatchRateBody, names_once=False)
_publish_body = BodyDecoder(PublishRateBody, names_once=False)


class DispatchForm:
    """DispatchRate."""

    def read(self, body: bytes) -> Edit:
        """How a body changes a limit.

        Raises:
            BadBody: naming the field.
        """
        said = _dispatch_body.decode(body)
        messages = integer(said.dispatch_throttling_rate_in_msg, _DISPATCH_MESSAGES, INT32_MAX)
        size = integer(said.dispatch_throttling_rate_in_byte, _DISPATCH_BYTES, INT64_MAX)
        period_s = max(1, integer(said.rate_period_in_second, "ratePeriodInSecond", INT32_MAX) or 1)
        relative = flag(said.relative_to_publish_rate, "relativeToPublishRate")
        _check_period(messages, period_s, _DISPATCH_MESSAGES)
        _check_period(size, period_s, _DISPATCH_BYTES)
        rates = Rates(rate_over(messages, period_s), rate_over(size, period_s))
        return lambda limit: replace(
            limit, dispatch=rates, dispatch_period_s=period_s, dispatch_relative=relative
        )

    def unset(self, limit: LocalLimit) -> LocalLimit:
        """The limit without this kind."""
        return replace(NOT_SET, publish=limit.publish)

    def shown(self, limit: LocalLimit) -> DispatchRate | None:
        """The limit in this form; None where this kind is not set."""
        if limit.dispatch is None:
            return None
        period_s = limit.dispatch_period_s
        return DispatchRate(
            min(units_over(limit.dispatch.messages, period_s), INT32_MAX),
            units_over(limit.dispatch.bytes, period_s),
            limit.dispatch_relative,
            period_s,
        )


class PublishForm:
    """PublishRate."""

    def read(self, body: bytes) -> Edit:
        """How a body changes a limit.

        Raises:
            BadBody: naming the field.
        """
        said = _publish_body.decode(body)
        messages = integer(
            said.publish_throttling_rate_in_msg, "publishThrottlingRateInMsg", INT32_MAX
        )
        size = integer(
            said.publish_throttling_rate_in_byte, "publishThrottlingRateInByte", INT64_MAX
        )
        rates = Rates(rate_over(messages), rate_over(size))
        return lambda limit: replace(limit, publish=rates)

    def unset(self, limit: LocalLimit) -> LocalLimit:
        """The limit without this kind."""
        return replace(limit, publish=None)

    def shown(self, limit: LocalLimit) -> PublishRate | None:
        """The limit in this form; None where this kind is not set."""
        if limit.publish is None:
            return None
        messages = min(units_over(limit.publish.messages), INT32_MAX)
        return PublishRate(messages, units_over(limit.publish.bytes))


#: One of Pulsar's two forms of a rate.
RateForm = DispatchForm | PublishForm

DISPATCH: Final = DispatchForm()
PUBLISH: Final = PublishForm()

#: What Pulsar says is in force where nobody set anything: its broker's defaults, which limit nothing.
NO_DISPATCH_RATE: Final = DispatchRate(
    0, 0, relative_to_publish_rate=False, rate_period_in_second=1
)


def rate_over(units: int | None, period_s: int = 1) -> Rate:
    """A rate per second of so many units in a period, rounded down.

    Absent, <= 0 or above `QUOTA_MAX` is unlimited.
    """
    if units is None or units <= 0:
        return None
    rate = units * MILLI // period_s
    return None if rate > QUOTA_MAX * MILLI else rate


def units_over(rate: Rate, period_s: int = 1) -> int:
    """What a rate is in a period, fractions rounded up, as 0 would be unlimited."""
    return UNLIMITED if rate is None else max(1, -(-rate * period_s // MILLI))


def _check_period(units: int | None, period_s: int, name: str) -> None:
    """Refuse what is finer than a rate can be: rounded up it would be many times what was meant."""
    if units is not None and 0 < units * MILLI < period_s:
        raise BadBody(
            f"{name}: expected at least 1 in {MILLI} seconds (ratePeriodInSecond), "
            f"got {units} in {period_s}"
        )
