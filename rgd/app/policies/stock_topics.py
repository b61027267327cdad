"""Selects the topics whose policies a poll reads from a stock Pulsar.

Law: topics that callers asked this daemon about, topics whose backlogs it polls, and topics known to have
policies, are read in every poll as long as they all fit. If they do not fit, they take turns, so each is read repeatedly.

The limiter forgets the requested names whenever a new snapshot comes into force, so topics are stored here for
`KEEP_POLLS` polls.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Final

from rgd.core.bounds import BOUNDS
from rgd.core.buckets.decision import Name
from rgd.core.policies.names import partitioned_topic_of

#: Calls for a topic, in addition to one for each of its subscriptions.
CALLS_A_TOPIC: Final = 4
#: A topic without policies is not read any more after this many polls without a request.
KEEP_POLLS: Final = 60
#: Most stored topics; beyond that the topics with the oldest request are dropped.
TOPICS_MAX: Final = BOUNDS.buckets.chains_max


class SeenTopics:
    """The topics with recent requests, and the next one in turn."""

    def __init__(self) -> None:
        self._polls = 0
        #: By topic, the oldest request first: its subscriptions, and the poll after its last request.
        self._seen: dict[str, tuple[set[str], int]] = {}
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
        wanted = {name: frozenset[str]() for name in known}
        wanted.update((name, frozenset(names)) for name, (names, _) in self._seen.items())
        chosen = in_turn(wanted, calls_max, self._last)
        self._last = next(reversed(chosen), "")
        return chosen, len(wanted)

    def _remember(self, asked: Iterable[Name]) -> None:
        fresh: dict[str, set[str]] = {}
        for _, _, _, topic, subscription in asked:
            if topic is not None:
                # A partition has the policies of its whole topic.
                names = fresh.setdefault(partitioned_topic_of(topic) or topic, set())
                if subscription is not None:
                    names.add(subscription)
        for name, names in fresh.items():
            before, _ = self._seen.pop(name, (set(), 0))
            self._seen[name] = (before | names, self._polls)
        surplus = len(self._seen) - TOPICS_MAX
        for name, (_, asked_at) in list(self._seen.items()):
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
