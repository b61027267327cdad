"""Selects the topics whose policies a poll reads from a stock Pulsar.

Law: topics that callers asked this daemon about, topics whose backlogs it polls, and topics known to have
policies, are read in every poll as long as they all fit. If they do not fit, they take turns, so each is read repeatedly.

The limiter forgets the requested names whenever a new snapshot comes into force, so topics and subscriptions are stored
here for `KEEP_POLLS` polls. Of a topic with more subscriptions than a poll may have calls, those with the newest
request are read; a subscription that is known to have a limit is read with its topic in any case.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Final

from rgd.core.bounds import BOUNDS
from rgd.core.buckets.decision import Name
from rgd.core.policies.names import partitioned_topic_of

#: Calls for a topic, in addition to one for each of its subscriptions.
CALLS_A_TOPIC: Final = 4
#: A topic or subscription without policies is not read any more after this many polls without a request.
KEEP_POLLS: Final = 60
#: Most stored names; beyond that those with the oldest request are dropped.
NAMES_MAX: Final = BOUNDS.buckets.chains_max


class SeenTopics:
    """The topics with recent requests, and the next one in turn."""

    def __init__(self) -> None:
        self._polls = 0
        #: Topics and their subscriptions, the oldest request first: the poll after it.
        self._seen: dict[tuple[str, str | None], int] = {}
        self._last = ""

    def choose(
        self, asked: Iterable[Name], known: Iterable[str], calls_max: int
    ) -> tuple[dict[str, frozenset[str]], int]:
        """The topics to read now with their subscriptions, and how many are due.

        Args:
            asked: the names that callers asked for since the last call.
            known: topics that are known to have policies, or whose backlogs are polled.
            calls_max: at most so many calls, but at least one topic.
        """
        self._polls += 1
        self._remember(asked)
        names: dict[str, list[str]] = {name: [] for name in known}
        for topic, subscription in reversed(self._seen):
            subscriptions = names.setdefault(topic, [])
            if subscription is not None:
                subscriptions.append(subscription)
        most = max(0, calls_max - CALLS_A_TOPIC)
        wanted = {name: frozenset(newest[:most]) for name, newest in names.items()}
        chosen = in_turn(wanted, calls_max, self._last)
        self._last = next(reversed(chosen), "")
        return chosen, len(wanted)

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


def in_turn(
    wanted: Mapping[str, frozenset[str]], calls_max: int, last: str
) -> dict[str, frozenset[str]]:
    """As many topics as fit into a poll, at least one, beginning after the last one of the previous poll."""
    names = sorted(wanted)
    start = bisect_right(names, last)
    chosen: dict[str, frozenset[str]] = {}
    calls = 0
    for name in [*names[start:], *names[:start]]:
        calls += CALLS_A_TOPIC + len(wanted[name])
        if chosen and calls > calls_max:
            break
        chosen[name] = wanted[name]
    return chosen
