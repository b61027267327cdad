"""The hash of a groups file, by which daemons compare their policies.

Law: files with the same content have the same hash, on every machine, in every run, whatever their order.
Files that differ in any effect have different hashes. Default values are left out, so that
a version with more keys agrees with an older one, as long as no file uses these keys.

The hashed text is JSON with sorted keys, written entry by entry. With 100,000 namespaces in one
piece it would hold the interpreter for a tenth of a second. Its keys are independent of the file's keys,
and stay when those change.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Any, Final

from rgd.core.policies.model import BacklogQuotas, Group, Limit, LocalLimit, Rates
from rgd.core.policies.snapshot import PolicySnapshot

#: Most names that are sorted in one call.
SLICE: Final = 1000

_Data = dict[str, object]
#: A section's entries by key, the name that is hashed for a key, and the data that are hashed for a value.
_Section = tuple[Mapping[Any, Any], Callable[[Any], str], Callable[[Any], object]]


def policies_hash(snapshot: PolicySnapshot) -> int:
    """A hash of a policy snapshot: 1 to 2^63 - 1, the same on every machine, run and version."""
    digest = hashlib.blake2b(digest_size=8)
    for text in _texts(snapshot):
        digest.update(text.encode())
    return (int.from_bytes(digest.digest(), "big") >> 1) or 1


def _texts(snapshot: PolicySnapshot) -> Iterator[str]:
    """JSON with sorted keys, piece by piece; empty sections are left out."""
    separator = "{"
    for name, section in sorted(_sections(snapshot).items()):
        entries = _entries(section)
        first = next(entries, None)
        if first is not None:
            yield f'{separator}"{name}": {{{first}'
            yield from (f", {entry}" for entry in entries)
            yield "}"
            separator = ", "
    yield "{}" if separator == "{" else "}"


def _sections(snapshot: PolicySnapshot) -> dict[str, _Section]:
    attach, limits, backlogs = snapshot.attach, snapshot.limits, snapshot.backlogs
    return {
        "groups": (snapshot.groups, str, _data_of_group),
        "tenants": (attach.tenants, str, str),
        "namespaces": (attach.namespaces, str, str),
        "topics": (attach.topics, str, str),
        # Its kinds take the position of the other limits' names.
        "limit_broker": (_data_of_local_limit(limits.broker), str, lambda value: value),
        "limit_namespaces": (limits.namespaces, str, _data_of_local_limit),
        "limit_topics": (limits.topics, str, _data_of_local_limit),
        "limit_subscriptions": (limits.subscriptions, json.dumps, _data_of_local_limit),
        "limit_namespace_subscriptions": (
            limits.namespace_subscriptions,
            str,
            _data_of_local_limit,
        ),
        "limit_topic_subscriptions": (limits.topic_subscriptions, str, _data_of_local_limit),
        "backlog_namespaces": (backlogs.namespaces, str, _data_of_backlog),
        "backlog_topics": (backlogs.topics, str, _data_of_backlog),
    }


def _entries(section: _Section) -> Iterator[str]:
    """The entries of a section in the order of their names, as JSON.

    An entry that sets nothing counts as absent, but a group counts by its name alone.
    """
    by_key, name_of, data_of = section
    for name, key in _in_order((name_of(key), key) for key in by_key):
        value = by_key[key]
        data = data_of(value)
        if data != {} or isinstance(value, Group):
            yield f"{json.dumps(name)}: {json.dumps(data, sort_keys=True)}"


def _in_order(names: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Sort in slices."""
    rest = iter(names)
    slices = []
    while some := list(islice(rest, SLICE)):
        slices.append(sorted(some))
    return merge(*slices)


def _data_of_group(group: Group) -> _Data:
    flags = {
        "blocked": group.blocked,
        "shadow": group.shadow,
        "soft_ppm": group.soft_ppm,
        "policy": group.policy,
        "topic_split": group.topic_split,
    }
    return {key: value for key, value in flags.items() if value} | _data_of_limit(group.quota)


def _data_of_limit(limit: Limit) -> _Data:
    return _data_of_rates("publish", limit.publish) | _data_of_rates("dispatch", limit.dispatch)


def _data_of_local_limit(limit: LocalLimit) -> _Data:
    data: _Data = {}
    for kind, rates in (("publish", limit.publish), ("dispatch", limit.dispatch)):
        if rates is not None:
            # Set to no limit is not the same as not set.
            data |= _data_of_rates(kind, rates) or {kind: "unlimited"}
    if limit.dispatch_period_s != 1:
        data["dispatch_period_s"] = limit.dispatch_period_s
    if limit.dispatch_relative:
        data["dispatch_relative"] = True
    return data


def _data_of_rates(kind: str, rates: Rates) -> _Data:
    data = {f"{kind}_messages": rates.messages, f"{kind}_bytes": rates.bytes}
    return {key: value for key, value in data.items() if value is not None}


def _data_of_backlog(quotas: BacklogQuotas) -> _Data:
    data: _Data = {}
    for name, quota in (("size", quotas.size), ("age", quotas.age)):
        if quota is not None:
            # A size below 0 is unlimited, and so is an age of 0 or less.
            size_bytes, age_s = max(quota.size_bytes, -1), quota.age_s if quota.age_s > 0 else -1
            data[name] = [size_bytes, age_s, quota.action]
    return data
