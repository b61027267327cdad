"""The hash by which daemons that read the same groups file know that they did.

Law: files that say the same have the same hash, on every machine, in every run, whatever their order;
files that differ in anything that is in force have another. What is at its default is left out, so that
a version that knows more keys agrees with one that does not, as long as nobody uses them.

The text that is hashed is JSON with sorted keys, written entry by entry: of 100,000 namespaces in one
piece it would hold the interpreter for a tenth of a second. Its names are not the file's: they stay when
those change.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Any, Final

from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import BacklogQuotas, Group, Limit, LocalLimit, Rates

#: Most names that are sorted in one go.
SLICE: Final = 1000

_Said = dict[str, object]
#: A section's entries: what is hashed as each one's name, what it is, and how that is told.
_Section = tuple[Mapping[Any, Any], Callable[[Any], str], Callable[[Any], object]]


def book_hash(book: PolicyBook) -> int:
    """A hash of what a book says: 1 to 2^63 - 1, the same on every machine, run and version."""
    digest = hashlib.blake2b(digest_size=8)
    for text in _texts(book):
        digest.update(text.encode())
    return (int.from_bytes(digest.digest(), "big") >> 1) or 1


def _texts(book: PolicyBook) -> Iterator[str]:
    """JSON with sorted keys, piece by piece; sections that say nothing are left out."""
    separator = "{"
    for name, section in sorted(_sections(book).items()):
        entries = _entries(section)
        first = next(entries, None)
        if first is not None:
            yield f'{separator}"{name}": {{{first}'
            yield from (f", {entry}" for entry in entries)
            yield "}"
            separator = ", "
    yield "{}" if separator == "{" else "}"


def _sections(book: PolicyBook) -> dict[str, _Section]:
    attach, limits, backlogs = book.attach, book.limits, book.backlogs
    return {
        "groups": (book.groups, str, _said_of_group),
        "tenants": (attach.tenants, str, str),
        "namespaces": (attach.namespaces, str, str),
        "topics": (attach.topics, str, str),
        # Its kinds stand where the other limits have names.
        "limit_broker": (_said_of_local_limit(limits.broker), str, lambda value: value),
        "limit_namespaces": (limits.namespaces, str, _said_of_local_limit),
        "limit_topics": (limits.topics, str, _said_of_local_limit),
        "limit_subscriptions": (limits.subscriptions, json.dumps, _said_of_local_limit),
        "limit_namespace_subscriptions": (
            limits.namespace_subscriptions,
            str,
            _said_of_local_limit,
        ),
        "limit_topic_subscriptions": (limits.topic_subscriptions, str, _said_of_local_limit),
        "backlog_namespaces": (backlogs.namespaces, str, _said_of_backlog),
        "backlog_topics": (backlogs.topics, str, _said_of_backlog),
    }


def _entries(section: _Section) -> Iterator[str]:
    """The entries of a section in the order of their names, as JSON.

    A place where nothing is set is as good as one that is not named; a group is there by its name.
    """
    by_key, name_of, told = section
    for name, key in _in_order((name_of(key), key) for key in by_key):
        value = by_key[key]
        said = told(value)
        if said != {} or isinstance(value, Group):
            yield f"{json.dumps(name)}: {json.dumps(said, sort_keys=True)}"


def _in_order(names: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Sort, never much in one go."""
    rest = iter(names)
    slices = []
    while some := list(islice(rest, SLICE)):
        slices.append(sorted(some))
    return merge(*slices)


def _said_of_group(group: Group) -> _Said:
    flags = {
        "blocked": group.blocked,
        "shadow": group.shadow,
        "policy": group.policy,
        "topic_split": group.topic_split,
    }
    return {key: value for key, value in flags.items() if value} | _said_of_limit(group.quota)


def _said_of_limit(limit: Limit) -> _Said:
    return _said_of_rates("publish", limit.publish) | _said_of_rates("dispatch", limit.dispatch)


def _said_of_local_limit(limit: LocalLimit) -> _Said:
    said: _Said = {}
    for kind, rates in (("publish", limit.publish), ("dispatch", limit.dispatch)):
        if rates is not None:
            # Set to no limit is not the same as not set.
            said |= _said_of_rates(kind, rates) or {kind: "unlimited"}
    if limit.dispatch_period_s != 1:
        said["dispatch_period_s"] = limit.dispatch_period_s
    if limit.dispatch_relative:
        said["dispatch_relative"] = True
    return said


def _said_of_rates(kind: str, rates: Rates) -> _Said:
    said = {f"{kind}_messages": rates.messages, f"{kind}_bytes": rates.bytes}
    return {key: value for key, value in said.items() if value is not None}


def _said_of_backlog(quotas: BacklogQuotas) -> _Said:
    said: _Said = {}
    for name, quota in (("size", quotas.size), ("age", quotas.age)):
        if quota is not None:
            # Whatever is below 0 is unlimited; an age of 0 is, too.
            size_bytes, age_s = max(quota.size_bytes, -1), quota.age_s if quota.age_s > 0 else -1
            said[name] = [size_bytes, age_s, quota.action]
    return said
