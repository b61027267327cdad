"""The daemon's interface to those who bring and read backlogs: the HTTP server and the poller.

Law: every call but `check` is a bounded slice of work that never waits.
"""

from collections.abc import Sequence
from typing import Protocol

from rgd.core.backlog.model import Source, TopicBacklog
from rgd.core.policies.model import BacklogQuota
from rgd.views.backlog import BacklogView
from rgd.views.topic_stats import TopicStats


class BacklogDoor(Protocol):
    """Brings backlogs in and shows them."""

    @property
    def default(self) -> BacklogQuota:
        """The quota of topics where neither they nor their namespaces have one."""

    def unix_ms(self) -> int:
        """The time now, ms since 1970: when a report was read whose source does not say it."""

    def report(self, reports: Sequence[TopicBacklog]) -> None:
        """Take reports, each checked (`check_backlog`); at most `EVENT_TOPICS_MAX`.

        One that is refused because there are too many topics is counted, and `backlog` shows an
        older report or none.
        """

    def is_kept(self, report: TopicBacklog) -> bool:
        """Whether a report is the one that counts for its topic."""

    def withdraw(self, source: Source, topics: Sequence[str]) -> None:
        """Drop topics that a source no longer reports; at most `EVENT_TOPICS_MAX`."""

    async def check(self) -> None:
        """Have all backlogs checked now; returns when that is done.

        Raises:
            Unavailable: the daemon stops.
        """

    def backlog(self, topic: str) -> BacklogView | None:
        """A topic's backlog (full name); None if it is not known."""

    def confirm(self, topic: str, subscription: str) -> bool:
        """Count an eviction that its carrier has done; False if none of this subscription is named now."""

    def evicting(self) -> list[str]:
        """The topics on which something is to be skipped."""

    def stats(self, topic: str) -> TopicStats | None:
        """The stats of one topic; None if its backlog is not known."""

    def no_partitions(self, topic: str) -> TopicStats:
        """The stats of a partitioned topic, to which no partition was added yet."""

    def partitions_of(self, topic: str) -> list[str]:
        """The known partitions of a topic."""
