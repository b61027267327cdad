"""Scenarios of `rgd report --what-if`: what would have been different.

    policy=steal          the share policy: `max-min`, PIP-82's three, or `pulsar-shipped`
    quota=acme:200        a group's quota in messages a second; `acme/bytes:1e6`, `acme/dispatch:200`,
                          `acme/dispatch/bytes:1e6`; `*` is every group, and `x1.5` a factor
    brokers=12            the demand of each group on so many brokers
    round=2s              the exchange's round, also in `ms`

A scenario is one or several of these, separated by commas.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rgd.core.fluid.cluster import PULSAR_SHIPPED
from rgd.core.policies.model import SharePolicyName
from rgd.core.units import QUOTA_MAX, Kind
from rgd.errors import ConfigError, Fault

POLICIES: Final = (*(policy.value for policy in SharePolicyName), PULSAR_SHIPPED)

#: Most scenarios of one report: each costs as much as judging the log once more.
SCENARIOS_MAX: Final = 8
#: Two thousand windows of as many brokers take some 350 MB of a worker.
BROKERS_MAX: Final = 500
#: No daemon's round is shorter, and what the model rounds up in each grows with their number.
ROUND_MS_MIN: Final = 50
ROUND_MS_MAX: Final = 3_600_000

_QUOTA: Final = re.compile(
    r"(?P<group>[^/]+)(/(?P<kind>publish|dispatch))?(/(?P<dimension>messages|bytes))?:"
    r"(?P<times>x?)(?P<number>[0-9]*[.]?[0-9]+(e[0-9]+)?)"
)
_ROUND: Final = re.compile(r"(?P<number>[0-9]*[.]?[0-9]+)(?P<unit>s|ms)")


@dataclass(frozen=True, slots=True)
class Quota:
    """Another quota of one dimension of a group, or of every group (`*`)."""

    group: str
    kind: str
    dimension: str
    #: Units per second, or a factor.
    number: float
    is_factor: bool

    def concerns(self, group: str, kind: str, dimension: str) -> bool:
        """Whether it is this group's."""
        return self.group in ("*", group) and (self.kind, self.dimension) == (kind, dimension)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is different from the log; None is as logged."""

    text: str
    policy: str | None = None
    brokers: int | None = None
    round_ms: float | None = None
    quotas: tuple[Quota, ...] = ()


AS_LOGGED: Final = Scenario("as logged")


def parse(texts: list[str]) -> tuple[Scenario, ...]:
    """The scenarios of the options.

    Raises:
        ConfigError: one cannot be read, or there are too many.
    """
    if len(texts) > SCENARIOS_MAX:
        raise _unusable(f"expected at most {SCENARIOS_MAX} scenarios, got {len(texts)}")
    return tuple(map(_scenario, texts))


def _scenario(text: str) -> Scenario:
    scenario, given = Scenario(text), set[str]()
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key not in _PARTS:
            raise _unusable(f"expected {', '.join(f'{known}=' for known in _PARTS)}, got {part!r}")
        what = part.rpartition(":")[0] or key
        if what in given:
            raise _unusable(f"expected {what} once in a scenario, got it again with {part!r}")
        given.add(what)
        scenario = _PARTS[key](scenario, value)
    return scenario


def _policy(scenario: Scenario, value: str) -> Scenario:
    if value not in POLICIES:
        raise _unusable(f"expected policy=one of {', '.join(POLICIES)}, got {value!r}")
    return replace(scenario, policy=value)


def _brokers(scenario: Scenario, value: str) -> Scenario:
    if not value.isdecimal() or not 1 <= int(value) <= BROKERS_MAX:
        raise _unusable(f"expected brokers=1 to {BROKERS_MAX}, got {value!r}")
    return replace(scenario, brokers=int(value))


def _round(scenario: Scenario, value: str) -> Scenario:
    match = _ROUND.fullmatch(value)
    round_ms = float(match["number"]) * (1000 if match["unit"] == "s" else 1) if match else 0.0
    if not ROUND_MS_MIN <= round_ms <= ROUND_MS_MAX:
        raise _unusable(f"expected round=2s or round=500ms, 50 ms to an hour, got {value!r}")
    return replace(scenario, round_ms=round_ms)


def _quota(scenario: Scenario, value: str) -> Scenario:
    match = _QUOTA.fullmatch(value)
    number = float(match["number"]) if match else -1.0
    if match is None or not 0 <= number <= QUOTA_MAX:
        raise _unusable(
            "expected quota=GROUP:RATE, quota=GROUP/dispatch/bytes:RATE or quota=*:x1.5 with "
            f"units per second from 0 to {QUOTA_MAX:g}, got {value!r}"
        )
    quota = Quota(
        match["group"],
        match["kind"] or Kind.PUBLISH.value,
        match["dimension"] or "messages",
        number,
        is_factor=bool(match["times"]),
    )
    return replace(scenario, quotas=(*scenario.quotas, quota))


_PARTS: Final[Mapping[str, Callable[[Scenario, str], Scenario]]] = {
    "policy": _policy,
    "quota": _quota,
    "brokers": _brokers,
    "round": _round,
}


def _unusable(expected: str) -> ConfigError:
    return ConfigError(Fault("command line", "--what-if", expected))
