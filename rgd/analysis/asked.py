"""What a report is about: of some logs a time range, groups, tenants; and scenarios. A stream asks by index."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import Any, ClassVar, Final

from rgd.analysis.errors import NothingLogged
from rgd.analysis.scenarios import Scenario


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From (inclusive) until (exclusive), in ms since 1970; None is open."""

    from_ms: int | None = None
    to_ms: int | None = None
    #: Whether damage behind the last entry of the range is a part of it.
    has_tail: ClassVar[bool] = True

    def begins_after(self, timestamp_ms: int, _index: int) -> bool:
        """Whether an entry lies before the range."""
        return self.from_ms is not None and timestamp_ms < self.from_ms

    def ends_before(self, timestamp_ms: int, _index: int) -> bool:
        """Whether an entry lies behind the range."""
        return self.is_over(timestamp_ms)

    def is_over(self, timestamp_ms: int) -> bool:
        """Whether a moment lies behind the range."""
        return self.to_ms is not None and timestamp_ms >= self.to_ms


ALWAYS: Final[TimeRange] = TimeRange()


@dataclass(frozen=True, slots=True)
class IndexRange:
    """From (inclusive) until (exclusive), by the broker's indexes; damage goes with the entry that follows it.

    Law: of ranges that follow one another each entry and each stretch of damage is in one.
    """

    from_index: int
    to_index: int
    #: Whether the entry that follows the segment's last one is in the range.
    has_tail: bool = False

    def begins_after(self, _timestamp_ms: int, index: int) -> bool:
        """Whether an entry lies before the range."""
        return index < self.from_index

    def ends_before(self, _timestamp_ms: int, index: int) -> bool:
        """Whether an entry lies behind the range."""
        return index >= self.to_index


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report is about; empty sets are all."""

    #: By the brokers' timestamps.
    within: TimeRange = ALWAYS
    groups: frozenset[str] = frozenset()
    #: Only groups whose figures are one of these tenants'.
    tenants: frozenset[str] = frozenset()
    #: What would have been different.
    scenarios: tuple[Scenario, ...] = ()
    #: Another range to compare with.
    compare: TimeRange | None = None
    #: So many groups are listed and drawn, the worst first; 0: all are listed, and some drawn.
    top: int = 0

    @property
    def names(self) -> frozenset[str]:
        """Groups that are asked about by their names."""
        quotas = (quota.group for one in self.scenarios for quota in one.quotas)
        return self.groups | {*quotas} - {"*"}


EVERYTHING: Final = Asked()


def near(names: Iterable[str], known: Collection[str]) -> set[str]:
    """The names that are known, and for each other one those that are most like it."""
    others = ([one] if one in known else get_close_matches(one, known) for one in names)
    return {*chain.from_iterable(others)}


def check_named(asked: Asked, found: Collection[str]) -> None:
    """Refuse groups that the logs do not know, before any row is read.

    Args:
        asked: in a range of times one known group is enough.
        found: what `near` gives of all names.

    Raises:
        NothingLogged: with the names most like the first of them.
    """
    missing = asked.names - {*found}
    if asked.within != ALWAYS and asked.groups - missing:
        missing -= asked.groups
    for name in sorted(missing)[:1]:
        others = ", ".join(get_close_matches(name, found))
        raise NothingLogged(
            f"the logs hold no usage of group {name!r} (in the time that was asked for); "
            + (f"near it are {others}" if others else "`rgd log cat` prints which groups they have")
        )


def check_found(findings: Sequence[Mapping[str, Any]], asked: Asked) -> None:
    """Refuse a question about groups or tenants that the report does not have.

    Raises:
        NothingLogged: with their names.
    """
    used = {finding["group"] for finding in findings}
    missing = asked.names - asked.groups - used if used else asked.groups | asked.tenants
    if missing:
        raise NothingLogged(
            f"the report has no usage of {', '.join(sorted(missing))} (in the time that was asked for); `rgd log cat` "
            "prints which groups the logs have"
        )
