"""What a report is about: of some logs a time range, groups, tenants; and scenarios. A stream asks by index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from rgd.analysis.errors import NothingLogged, NotIndexed
from rgd.analysis.scenarios import Scenario
from rgd.storage.headers import Header
from rgd.storage.marks import Mark
from rgd.wire.frame import Entry

#: An entry, or what tells where one is: with its index and its timestamp.
Stamped = Entry | Header | Mark


def index_of(stamped: Stamped) -> int:
    """The index that the broker gave an entry.

    Raises:
        NotIndexed: it gave none.
    """
    if stamped.index is None:
        raise NotIndexed(
            "an entry has no broker index, so a stream cannot say how far it has read: log with "
            "`log.brokerEntryMetadataInterceptors`, to a new folder, or read with `spark.read`"
        )
    return stamped.index


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From (inclusive) until (exclusive), in ms since 1970; None is open."""

    from_ms: int | None = None
    to_ms: int | None = None
    #: Whether damage behind the last entry of the range is a part of it.
    has_tail: ClassVar[bool] = True

    def begins_after(self, stamped: Stamped) -> bool:
        """Whether an entry lies before the range."""
        return self.from_ms is not None and stamped.timestamp < self.from_ms

    def ends_before(self, stamped: Stamped) -> bool:
        """Whether an entry lies behind the range."""
        return self.is_over(stamped.timestamp)

    def is_over(self, timestamp_ms: int) -> bool:
        """Whether a moment lies behind the range."""
        return self.to_ms is not None and timestamp_ms >= self.to_ms


ALWAYS: Final[TimeRange] = TimeRange()


@dataclass(frozen=True, slots=True)
class IndexRange:
    """From (inclusive) until (exclusive), by the broker's indexes; damage goes with the entry that follows it.

    Law: of ranges that follow one another each entry and each stretch of damage is in one. Only entries without
    an index are an error (`NotIndexed`).
    """

    from_index: int
    to_index: int
    #: Whether the entry that follows the segment's last one is in the range.
    has_tail: bool = False

    def begins_after(self, stamped: Stamped) -> bool:
        """Whether an entry lies before the range."""
        return index_of(stamped) < self.from_index

    def ends_before(self, stamped: Stamped) -> bool:
        """Whether an entry lies behind the range."""
        return index_of(stamped) >= self.to_index


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


EVERYTHING: Final = Asked()


def check_found(findings: Sequence[Mapping[str, Any]], asked: Asked) -> None:
    """Refuse a question about groups or tenants that nobody used, also a scenario's quota.

    Raises:
        NothingLogged: with their names.
    """
    if not findings and (asked.groups or asked.tenants):
        names = ", ".join(sorted(asked.groups or asked.tenants))
        raise NothingLogged(
            f"the logs hold no usage of {names} (in the time that was asked for); `rgd log cat` "
            "prints which groups they have"
        )
    used = {"*", *(finding["group"] for finding in findings)}
    for quota in (quota for scenario in asked.scenarios for quota in scenario.quotas):
        if quota.group not in used:
            raise NothingLogged(
                f"--what-if has a quota for {quota.group!r}, and the report has no usage of that group; "
                "correct the name, or leave it out"
            )
