"""The groups file: groups, what they are attached to, and limits, as a `PolicyBook`.

Law: a file is taken whole or refused whole, with every fault at once (file, dotted key, what was
expected). <= 0 or absent means unlimited, as in Pulsar; blocking is `blocked: true` (design 2).

The shape is design 11's, and strict: an unknown key, a misspelt group, `true` where a number goes
or a name Pulsar would refuse is a fault, never a guess. The functions go down the file in its own
order: groups, attach, limits. YAML itself is `document`'s; when to read the file again is
`rgd.app`'s.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from rgd.config.document import Document, read_document
from rgd.config.faults import Place, shown
from rgd.core.errors import InvalidName
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import (
    NO_LIMIT,
    UNLIMITED,
    Attachments,
    Group,
    Limit,
    Limits,
    Rate,
    Rates,
    SharePolicyName,
    TopicSplit,
    rate_of,
)
from rgd.core.policies.names import (
    check_entity,
    check_subscription,
    parse_namespace,
    parse_topic,
)

#: The keys at the top of a groups file; `rgd validate` tells it from a settings file by them.
TOP_KEYS: Final = ("groups", "attach", "limits")

_Choice = TypeVar("_Choice", bound=StrEnum)

_RATE_KEYS: Final = ("messages", "bytes")
_LIMIT_KEYS: Final = ("publish", "dispatch")
_GROUP_KEYS: Final = (*_LIMIT_KEYS, "policy", "topic_split", "blocked", "shadow")
_ATTACH_CHECKS: Final[dict[str, Callable[[str], str]]] = {
    "tenants": partial(check_entity, field="tenant"),
    "namespaces": parse_namespace,
    "topics": parse_topic,
}
_LIMITS_KEYS: Final = ("broker", "topics", "subscriptions")


def load_groups(path: Path) -> PolicyBook:
    """Read a groups file.

    Raises:
        ConfigError: the file cannot be used; carries every fault.
    """
    document = read_document(path)
    book = book_of(document)
    document.faults.raise_if_any()
    return book


def book_of(document: Document) -> PolicyBook:
    """The book a document says; what is wrong goes to its faults, and then the book is not to be used."""
    at = Place(document.faults)
    if document.value is None:
        # A file that is cut off while it is written is empty; it must not lift every limit.
        at.wrong("expected groups, attach or limits, got an empty file; `{}` says no groups")
        return PolicyBook()
    top = at.mapping(document.value)
    at.known_keys(top, TOP_KEYS)
    groups_at = at.below("groups")
    groups = {
        name: _group(name, value, at=groups_at.below(name))
        for name, value in groups_at.mapping(top.get("groups")).items()
    }
    return PolicyBook(
        groups=groups,
        attach=_attachments(top.get("attach"), at.below("attach"), groups=groups),
        limits=_limits(top.get("limits"), at.below("limits")),
    )


def book_hash(book: PolicyBook) -> int:
    """A hash of what a book says: 1 to 2^63 - 1, the same on every machine, run and version.

    What is at its default is left out, so that a version that knows more keys agrees with one that
    does not, as long as nobody uses them.
    """
    said = {
        "groups": {name: _said_of_group(group) for name, group in book.groups.items()},
        "tenants": book.attach.tenants,
        "namespaces": book.attach.namespaces,
        "topics": book.attach.topics,
        "limit_broker": _said_of_limit(book.limits.broker),
        "limit_topics": {
            topic: _said_of_limit(limit) for topic, limit in book.limits.topics.items()
        },
        "limit_subscriptions": {
            json.dumps(name): _said_of_limit(limit)
            for name, limit in book.limits.subscriptions.items()
        },
    }
    text = json.dumps({key: value for key, value in said.items() if value}, sort_keys=True)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 1) or 1


# --- groups ------------------------------------------------------------------------------------------


def _group(name: str, value: object, *, at: Place) -> Group:
    _check_name(name, partial(check_entity, field="group"), at=at)
    said = _filled_mapping(value, at)
    at.known_keys(said, _GROUP_KEYS)
    return Group(
        name,
        quota=_limit_of(said, at),
        blocked=_flag(said.get("blocked", False), at.below("blocked")),
        shadow=_flag(said.get("shadow", False), at.below("shadow")),
        policy=_choice(said, "policy", SharePolicyName, at=at),
        topic_split=_choice(said, "topic_split", TopicSplit, at=at),
    )


def _choice(
    said: dict[str, object], key: str, choices: type[_Choice], *, at: Place
) -> _Choice | None:
    """One of a few words, where the key is said at all."""
    if key not in said:
        return None
    value, known = said[key], [choice.value for choice in choices]
    if isinstance(value, str) and value in known:
        return choices(value)
    hint = at.faults.meant(value, known) if isinstance(value, str) else ""
    at.below(key).wrong(f"expected one of {', '.join(known)}, got {shown(value)}{hint}")
    return None


def _flag(value: object, at: Place) -> bool:
    if isinstance(value, bool):
        return value
    at.wrong(f"expected true or false, got {shown(value)}")
    return False


# --- attach ------------------------------------------------------------------------------------------


def _attachments(value: object, at: Place, *, groups: Collection[str]) -> Attachments:
    said = at.mapping(value)
    at.known_keys(said, _ATTACH_CHECKS)
    return Attachments(
        **{
            level: _attached(said.get(level), at.below(level), check=check, groups=groups)
            for level, check in _ATTACH_CHECKS.items()
        }
    )


def _attached(
    value: object, at: Place, *, check: Callable[[str], str], groups: Collection[str]
) -> dict[str, str]:
    attached: dict[str, str] = {}
    for name, group in at.mapping(value).items():
        _check_name(name, check, at=at.below(name))
        if isinstance(group, str) and group in groups:
            attached[name] = group
        else:
            hint = at.faults.meant(group, groups) if isinstance(group, str) else ""
            if isinstance(group, int | float):
                hint = " (a name of digits wants quotes)"
            at.below(name).wrong(
                f"expected the name of a group that this file has under `groups`, got {shown(group)}{hint}"
            )
    return attached


# --- limits ------------------------------------------------------------------------------------------


def _limits(value: object, at: Place) -> Limits:
    said = at.mapping(value)
    at.known_keys(said, _LIMITS_KEYS)
    return Limits(
        broker=_limit(said["broker"], at.below("broker")) if "broker" in said else NO_LIMIT,
        topics=_topic_limits(said.get("topics"), at.below("topics")),
        subscriptions=_subscription_limits(said.get("subscriptions"), at.below("subscriptions")),
    )


def _topic_limits(value: object, at: Place) -> dict[str, Limit]:
    limits: dict[str, Limit] = {}
    for topic, said in at.mapping(value).items():
        topic_at = at.below(topic)
        _check_name(topic, parse_topic, at=topic_at)
        limits[topic] = _limit(said, topic_at)
    return limits


def _subscription_limits(value: object, at: Place) -> dict[tuple[str, str], Limit]:
    """Subscriptions are told below their topic: `TOPIC: {NAME: {dispatch: ...}}`."""
    limits: dict[tuple[str, str], Limit] = {}
    for topic, names in at.mapping(value).items():
        topic_at = at.below(topic)
        _check_name(topic, parse_topic, at=topic_at)
        for name, said in _filled_mapping(names, topic_at).items():
            _check_name(name, check_subscription, at=topic_at.below(name))
            limits[topic, name] = _limit(said, topic_at.below(name))
    return limits


def _limit(value: object, at: Place) -> Limit:
    said = _filled_mapping(value, at)
    at.known_keys(said, _LIMIT_KEYS)
    return _limit_of(said, at)


def _limit_of(said: dict[str, object], at: Place) -> Limit:
    """The `publish` and `dispatch` of a mapping whose keys are checked."""
    return Limit(
        *(_rates(said[kind], at.below(kind)) if kind in said else UNLIMITED for kind in _LIMIT_KEYS)
    )


def _rates(value: object, at: Place) -> Rates:
    said = _filled_mapping(value, at)
    at.known_keys(said, _RATE_KEYS)
    return Rates(
        *(_rate(said[name], at.below(name)) if name in said else None for name in _RATE_KEYS)
    )


def _rate(value: object, at: Place) -> Rate:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return rate_of(value)
    at.wrong(f"expected a number (units per second; 0 or less is unlimited), got {shown(value)}")
    return None


# --- what is checked everywhere ----------------------------------------------------------------------


def _filled_mapping(value: object, at: Place) -> dict[str, object]:
    """A mapping that must be there: a name with nothing after it is more often a wrong indent."""
    if value is None:
        at.wrong("expected a mapping, got nothing; `{}` sets no limits")
    return at.mapping(value)


def _check_name(name: str, check: Callable[[str], str], *, at: Place) -> None:
    try:
        check(name)
    except InvalidName as exc:
        # The core's message names its field first; here the dotted key does.
        at.wrong(str(exc).partition(": ")[2])


# --- what a book says --------------------------------------------------------------------------------


def _said_of_group(group: Group) -> dict[str, object]:
    flags = {
        "blocked": group.blocked,
        "shadow": group.shadow,
        "policy": group.policy,
        "topic_split": group.topic_split,
    }
    said: dict[str, object] = {key: value for key, value in flags.items() if value}
    return said | _said_of_limit(group.quota)


def _said_of_limit(limit: Limit) -> dict[str, object]:
    said = {
        f"{kind}_{dimension}": getattr(getattr(limit, kind), dimension)
        for kind in _LIMIT_KEYS
        for dimension in _RATE_KEYS
    }
    return {key: value for key, value in said.items() if value is not None}
