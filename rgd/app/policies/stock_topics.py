"""Selects the topics whose policies a poll reads from a stock Pulsar.

Law: topics that callers asked this daemon about, topics whose backlogs it polls, and topics known to have
policies, are read in every poll as long as they all fit. If they do not fit, they take turns, so each is read repeatedly;
and so do the subscriptions of a topic that does not fit by itself. A subscription that is known to have a limit is read
with its topic in any case.

The limiter has all names requested since a snapshot came into force, and forgets them with the next one, so topics and
subscriptions are stored here for another `KEEP_POLLS` polls.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from rgd.core.bounds import BOUNDS
from rgd.core.buckets.decision import Name
from rgd.core.policies.names import partitioned_topic_of

#: Calls for a topic, in addition to one for each of its subscriptions.
CALLS_A_TOPIC: Final = 4
#: A topic or subscription without policies is not read any more after this many polls since the limiter forgot it.
KEEP_POLLS: Final = 60
#: Most stored names; beyond that those with the oldest request are dropped.
NAMES_MAX: Final = BOUNDS.buckets.chains_max


class SeenTopics:
    """The topics with recent requests, and the next one in turn."""

    def __init__(self) -> None:
        self._polls = 0
        #: Topics and their subscriptions, the oldest request first: the poll after it.
        self._seen: dict[tuple[str, str | None], int] = {}
        #: The last one of the previous poll, and the first of its subscriptions.
        self._last = ("", 0)

    def choose(
        self, asked: Iterable[Name], known: Iterable[str], calls_max: int
    ) -> tuple[dict[str, frozenset[str]], int]:
        """The topics to read now with their subscriptions, and how many are due.

        A topic that does not fit into a poll is divided into parts, and each counts as one.

        Args:
            asked: the names that callers asked for since the last change of policies, the first request first.
            known: topics that are known to have policies, or whose backlogs are polled.
            calls_max: at most so many calls, but at least one topic.
        """
        self._polls += 1
        self._remember(asked)
        names = self._with_subscriptions(known)
        most = max(1, calls_max - CALLS_A_TOPIC)
        due = [(name, at) for name in sorted(names) for at in range(0, len(names[name]) or 1, most)]
        start = bisect_right(due, self._last)
        chosen: dict[str, frozenset[str]] = {}
        calls = 0
        # No two parts of one topic are chosen, because all but its last one fill a poll.
        for name, at in [*due[start:], *due[:start]]:
            part = frozenset(names[name][at : at + most])
            calls += CALLS_A_TOPIC + len(part)
            if chosen and calls > calls_max:
                break
            chosen[name], self._last = part, (name, at)
        return chosen, len(due)

    def _with_subscriptions(self, known: Iterable[str]) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {name: [] for name in known}
        for topic, subscription in self._seen:
            subscriptions = names.setdefault(topic, [])
            if subscription is not None:
                subscriptions.append(subscription)
        return names

    def _remember(self, asked: Iterable[Name]) -> None:
        for _, _, _, topic, subscription in asked:
            if topic is not None:
                # A partition has the policies of its whole topic.
                seen = partitioned_topic_of(topic) or topic, subscription
                self._seen.pop(seen, None)
                self._seen[seen] = self._polls
        surplus = len(self._seen) - NAMES_MAX
        for name, asked_at in list(self._seen.items()):
            if surplus <= 0 and asked_at >= self._polls - KEEP_POLLS:
                break
            del self._seen[name]
            surplus -= 1
