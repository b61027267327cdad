"""Pulsar's DispatchRate and PublishRate, and the limits that they are here.

Law: what is put is shown again: whole rates over a period of at most 1000 seconds come back exactly
(both ways are rounded so that a limit never grows). One spelling for what Pulsar keeps as it was put:
an unlimited rate is -1, a period of less than a second 1.

A form says how one kind of a `LocalLimit` is read, shown and taken away; the other kind is left alone.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Generic, TypeVar

from msgspec.structs import astuple

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
from rgd.core.units import MILLI, QUOTA_MAX, Kind

#: What Pulsar answers for a rate that nobody set.
UNLIMITED: Final = -1

_Answer = TypeVar("_Answer", DispatchRate, PublishRate)

#: Makes a limit of the one that was.
Edit = Callable[[LocalLimit], LocalLimit]


class RateForm(Generic[_Answer]):
    """One of Pulsar's two forms of a rate.

    Args:
        kind: of a limit that it is.
        body: as it comes in: messages, bytes, and of dispatch more.
        answer: as it goes out, the same.
    """

    def __init__(
        self, kind: Kind, body: type[DispatchRateBody | PublishRateBody], answer: type[_Answer]
    ) -> None:
        self.kind, self.body = kind, body
        self.answer: Callable[..., _Answer] = answer
        self._decode = BodyDecoder(body, names_once=False).decode
        self._names = body.__struct_encode_fields__

    def read(self, body: bytes) -> Edit:
        """How a body changes a limit.

        Raises:
            BadBody: naming the field.
        """
        messages_said, size_said, *more = astuple(self._decode(body))
        relative_said, period_said = more or (None, None)
        messages = integer(messages_said, self._names[0], INT32_MAX)
        size = integer(size_said, self._names[1], INT64_MAX)
        period_s = max(1, integer(period_said, "ratePeriodInSecond", INT32_MAX) or 1)
        is_relative = flag(relative_said, "relativeToPublishRate")
        for name, units in zip(self._names, (messages, size), strict=False):
            _check_period(units, period_s, name)
        rates = Rates(rate_over(messages, period_s), rate_over(size, period_s))
        if self.kind is Kind.PUBLISH:
            return lambda limit: replace(limit, publish=rates)
        return lambda limit: replace(
            limit, dispatch=rates, dispatch_period_s=period_s, dispatch_relative=is_relative
        )

    def unset(self, limit: LocalLimit) -> LocalLimit:
        """The limit without this kind."""
        if self.kind is Kind.PUBLISH:
            return replace(limit, publish=None)
        return replace(NOT_SET, publish=limit.publish)

    def shown(self, limit: LocalLimit) -> _Answer | None:
        """The limit in this form; None where this kind is not set."""
        if self.kind is Kind.PUBLISH:
            return None if limit.publish is None else self.answer(*units_of(limit.publish))
        if limit.dispatch is None:
            return None
        period_s = limit.dispatch_period_s
        return self.answer(*units_of(limit.dispatch, period_s), limit.dispatch_relative, period_s)


DISPATCH: Final = RateForm(Kind.DISPATCH, DispatchRateBody, DispatchRate)
PUBLISH: Final = RateForm(Kind.PUBLISH, PublishRateBody, PublishRate)

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


def units_of(rates: Rates, period_s: int = 1) -> tuple[int, int]:
    """Rates as Pulsar has them, whose messages are 32 bits wide."""
    messages = min(units_over(rates.messages, period_s), INT32_MAX)
    return messages, units_over(rates.bytes, period_s)


def _check_period(units: int | None, period_s: int, name: str) -> None:
    """Refuse what is finer than a rate can be: rounded up it would be many times what was meant."""
    if units is not None and 0 < units * MILLI < period_s:
        raise BadBody(
            f"{name}: expected at least 1 in {MILLI} seconds (ratePeriodInSecond), "
            f"got {units} in {period_s}"
        )
