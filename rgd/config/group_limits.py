"""The sections `limits` and `backlog_quotas` of the groups file.

Law: an absent kind is not set here, so the next wider scope applies (`rgd.core.policies.precedence`).
A kind without a rate, or with 0 and less, is set to no limit, and so is a backlog quota.

The functions follow the order of the file. `rgd.core.buckets` enforces limits; `rgd.core.backlog`
backlog quotas.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from rgd.config.faults import KeyPath, shown
from rgd.config.group_entries import (
    KIND_KEYS,
    SHARED_MAX,
    check_name,
    choice,
    filled_mapping,
    rates_in,
)
from rgd.core.policies.model import (
    NOT_SET,
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    Backlogs,
    Limits,
    LocalLimit,
)
from rgd.core.policies.names import check_subscription, parse_namespace, parse_topic

_LIMITS_KEYS: Final = (
    "broker",
    "namespaces",
    "topics",
    "subscriptions",
    "namespace_subscriptions",
    "topic_subscriptions",
)
_BACKLOG_KEYS: Final = ("namespaces", "topics")
_TYPE_KEYS: Final = ("size", "age")
#: The largest values of Pulsar's long `limitSize` and int `limitTime`; larger ones are unlimited.
SIZE_BYTES_MAX: Final = (1 << 63) - 1
AGE_S_MAX: Final = (1 << 31) - 1

_local_limit = lru_cache(SHARED_MAX)(LocalLimit)
_backlog_quota = lru_cache(SHARED_MAX)(BacklogQuota)
_backlog_quotas = lru_cache(SHARED_MAX)(BacklogQuotas)

_Check = Callable[[str], str]
_Read = Callable[[object, KeyPath], LocalLimit]


# --- limits ------------------------------------------------------------------------------------------


def limits_of(value: object, at: KeyPath) -> Limits:
    """The limits of each broker alone."""
    entry = at.mapping(value)
    at.check_keys(entry, _LIMITS_KEYS)

    def by_name(key: str, check: _Check, read: _Read) -> dict[str, LocalLimit]:
        return _limits_by_name(entry.get(key), at.below(key), check=check, read=read)

    return Limits(
        broker=_limit(entry["broker"], at.below("broker")) if "broker" in entry else NOT_SET,
        namespaces=by_name("namespaces", parse_namespace, _limit),
        topics=by_name("topics", parse_topic, _limit),
        subscriptions=_subscription_limits(entry.get("subscriptions"), at.below("subscriptions")),
        namespace_subscriptions=by_name(
            "namespace_subscriptions", parse_namespace, _subscriptions_limit
        ),
        topic_subscriptions=by_name("topic_subscriptions", parse_topic, _subscriptions_limit),
    )


def _limits_by_name(
    value: object, at: KeyPath, *, check: _Check, read: _Read
) -> dict[str, LocalLimit]:
    limits: dict[str, LocalLimit] = {}
    for name, entry in at.mapping(value).items():
        name_at = at.below(name)
        check_name(name, check, at=name_at)
        limits[name] = read(entry, name_at)
    return limits


def _subscription_limits(value: object, at: KeyPath) -> dict[tuple[str, str], LocalLimit]:
    """Subscriptions are entries of their topic: `TOPIC: {NAME: {dispatch: ...}}`."""
    limits: dict[tuple[str, str], LocalLimit] = {}
    for topic, names in at.mapping(value).items():
        topic_at = at.below(topic)
        check_name(topic, parse_topic, at=topic_at)
        for name, entry in filled_mapping(names, topic_at).items():
            name_at = topic_at.below(name)
            check_name(name, check_subscription, at=name_at)
            limits[topic, name] = _limit(entry, name_at)
    return limits


def _limit(value: object, at: KeyPath) -> LocalLimit:
    entry = filled_mapping(value, at)
    at.check_keys(entry, KIND_KEYS)
    return _local_limit(rates_in(entry, "publish", at), rates_in(entry, "dispatch", at))


def _subscriptions_limit(value: object, at: KeyPath) -> LocalLimit:
    """The limit of each subscription, which has no publish rate."""
    entry = filled_mapping(value, at)
    at.check_keys(entry, KIND_KEYS)
    if "publish" in entry:
        at.below("publish").wrong(
            "expected only dispatch for subscriptions, because they cannot publish; "
            "publish goes under namespaces or topics"
        )
    return _local_limit(None, rates_in(entry, "dispatch", at))


# --- backlog quotas ----------------------------------------------------------------------------------


def backlogs_of(value: object, at: KeyPath) -> Backlogs:
    """The backlog quotas."""
    entry = at.mapping(value)
    at.check_keys(entry, _BACKLOG_KEYS)
    return Backlogs(
        namespaces=_quotas_by_name(
            entry.get("namespaces"), at.below("namespaces"), check=parse_namespace
        ),
        topics=_quotas_by_name(entry.get("topics"), at.below("topics"), check=parse_topic),
    )


def _quotas_by_name(value: object, at: KeyPath, *, check: _Check) -> dict[str, BacklogQuotas]:
    quotas: dict[str, BacklogQuotas] = {}
    for name, types in at.mapping(value).items():
        name_at = at.below(name)
        check_name(name, check, at=name_at)
        entry = filled_mapping(types, name_at)
        name_at.check_keys(entry, _TYPE_KEYS)
        quotas[name] = _backlog_quotas(
            _size_quota(entry["size"], name_at.below("size")) if "size" in entry else None,
            _age_quota(entry["age"], name_at.below("age")) if "age" in entry else None,
        )
    return quotas


def _size_quota(value: object, at: KeyPath) -> BacklogQuota:
    entry = filled_mapping(value, at)
    at.check_keys(entry, ("limit_bytes", "action"))
    most = _most(entry, "limit_bytes", SIZE_BYTES_MAX, at=at)
    return _backlog_quota(size_bytes=most, action=_action(entry, at))


def _age_quota(value: object, at: KeyPath) -> BacklogQuota:
    entry = filled_mapping(value, at)
    at.check_keys(entry, ("limit_s", "action"))
    most = _most(entry, "limit_s", AGE_S_MAX, at=at)
    return _backlog_quota(age_s=most, action=_action(entry, at))


def _most(entry: dict[str, object], key: str, largest: int, *, at: KeyPath) -> int:
    """The largest backlog; absent, <= 0 and values beyond Pulsar's range are unlimited (-1)."""
    value = entry.get(key, -1)
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value != int(value)
    ):
        at.below(key).wrong(f"expected a whole number (0 or less is unlimited), got {shown(value)}")
        return -1
    return int(value) if 0 < value <= largest else -1


def _action(entry: dict[str, object], at: KeyPath) -> BacklogAction:
    """The action at the quota; Pulsar's own default where it is absent."""
    if "action" not in entry:
        return BacklogAction.HOLD
    return choice(entry["action"], BacklogAction, at.below("action")) or BacklogAction.HOLD
