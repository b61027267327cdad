"""The sections `limits` and `backlog_quotas` of the groups file: what is set beside the groups.

Law: a kind that is not said is not set here, so the next wider place says (`rgd.core.policies.precedence`);
one that is said with no rate, or with 0 and less, is set to no limit, and so is a backlog quota.

The functions go down the file in its own order. What is enforced, and by whom, is elsewhere: limits in
`rgd.core.buckets`, backlog quotas where backlogs are known.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from rgd.config.faults import Place, shown
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
#: The largest that Pulsar's long `limitSize` and int `limitTime` can say; above is unlimited.
SIZE_BYTES_MAX: Final = (1 << 63) - 1
AGE_S_MAX: Final = (1 << 31) - 1

_local_limit = lru_cache(SHARED_MAX)(LocalLimit)
_backlog_quota = lru_cache(SHARED_MAX)(BacklogQuota)
_backlog_quotas = lru_cache(SHARED_MAX)(BacklogQuotas)

_Check = Callable[[str], str]
_Read = Callable[[object, Place], LocalLimit]


# --- limits ------------------------------------------------------------------------------------------


def limits_of(value: object, at: Place) -> Limits:
    """The limits of each broker alone."""
    said = at.mapping(value)
    at.known_keys(said, _LIMITS_KEYS)

    def by_name(key: str, check: _Check, read: _Read) -> dict[str, LocalLimit]:
        return _limits_by_name(said.get(key), at.below(key), check=check, read=read)

    return Limits(
        broker=_limit(said["broker"], at.below("broker")) if "broker" in said else NOT_SET,
        namespaces=by_name("namespaces", parse_namespace, _limit),
        topics=by_name("topics", parse_topic, _limit),
        subscriptions=_subscription_limits(said.get("subscriptions"), at.below("subscriptions")),
        namespace_subscriptions=by_name(
            "namespace_subscriptions", parse_namespace, _subscriptions_limit
        ),
        topic_subscriptions=by_name("topic_subscriptions", parse_topic, _subscriptions_limit),
    )


def _limits_by_name(
    value: object, at: Place, *, check: _Check, read: _Read
) -> dict[str, LocalLimit]:
    limits: dict[str, LocalLimit] = {}
    for name, said in at.mapping(value).items():
        name_at = at.below(name)
        check_name(name, check, at=name_at)
        limits[name] = read(said, name_at)
    return limits


def _subscription_limits(value: object, at: Place) -> dict[tuple[str, str], LocalLimit]:
    """Subscriptions are told below their topic: `TOPIC: {NAME: {dispatch: ...}}`."""
    limits: dict[tuple[str, str], LocalLimit] = {}
    for topic, names in at.mapping(value).items():
        topic_at = at.below(topic)
        check_name(topic, parse_topic, at=topic_at)
        for name, said in filled_mapping(names, topic_at).items():
            name_at = topic_at.below(name)
            check_name(name, check_subscription, at=name_at)
            limits[topic, name] = _limit(said, name_at)
    return limits


def _limit(value: object, at: Place) -> LocalLimit:
    said = filled_mapping(value, at)
    at.known_keys(said, KIND_KEYS)
    return _local_limit(rates_in(said, "publish", at), rates_in(said, "dispatch", at))


def _subscriptions_limit(value: object, at: Place) -> LocalLimit:
    """What each subscription is allowed: nobody publishes through one."""
    said = filled_mapping(value, at)
    at.known_keys(said, KIND_KEYS)
    if "publish" in said:
        at.below("publish").wrong(
            "expected only dispatch for subscriptions, since nobody publishes through one; "
            "publish goes under namespaces or topics"
        )
    return _local_limit(None, rates_in(said, "dispatch", at))


# --- backlog quotas ----------------------------------------------------------------------------------


def backlogs_of(value: object, at: Place) -> Backlogs:
    """The backlog quotas."""
    said = at.mapping(value)
    at.known_keys(said, _BACKLOG_KEYS)
    return Backlogs(
        namespaces=_quotas_by_name(
            said.get("namespaces"), at.below("namespaces"), check=parse_namespace
        ),
        topics=_quotas_by_name(said.get("topics"), at.below("topics"), check=parse_topic),
    )


def _quotas_by_name(value: object, at: Place, *, check: _Check) -> dict[str, BacklogQuotas]:
    quotas: dict[str, BacklogQuotas] = {}
    for name, types in at.mapping(value).items():
        name_at = at.below(name)
        check_name(name, check, at=name_at)
        said = filled_mapping(types, name_at)
        name_at.known_keys(said, _TYPE_KEYS)
        quotas[name] = _backlog_quotas(
            _size_quota(said["size"], name_at.below("size")) if "size" in said else None,
            _age_quota(said["age"], name_at.below("age")) if "age" in said else None,
        )
    return quotas


def _size_quota(value: object, at: Place) -> BacklogQuota:
    said = filled_mapping(value, at)
    at.known_keys(said, ("limit_bytes", "action"))
    most = _most(said, "limit_bytes", SIZE_BYTES_MAX, at=at)
    return _backlog_quota(size_bytes=most, action=_action(said, at))


def _age_quota(value: object, at: Place) -> BacklogQuota:
    said = filled_mapping(value, at)
    at.known_keys(said, ("limit_s", "action"))
    most = _most(said, "limit_s", AGE_S_MAX, at=at)
    return _backlog_quota(age_s=most, action=_action(said, at))


def _most(said: dict[str, object], key: str, largest: int, *, at: Place) -> int:
    """The most that may wait; absent, <= 0 and more than Pulsar can say are unlimited (-1)."""
    value = said.get(key, -1)
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value != int(value)
    ):
        at.below(key).wrong(f"expected a whole number (0 or less is unlimited), got {shown(value)}")
        return -1
    return int(value) if 0 < value <= largest else -1


def _action(said: dict[str, object], at: Place) -> BacklogAction:
    """What happens at the quota; Pulsar's own default where it is not said."""
    if "action" not in said:
        return BacklogAction.HOLD
    return choice(said["action"], BacklogAction, at.below("action")) or BacklogAction.HOLD
