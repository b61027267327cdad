"""The groups file: groups, their attachments, and further limits, as a `PolicySnapshot`.

Laws: a file is accepted or refused as a whole, with all faults at once (file, line, dotted key,
expectation). <= 0 or absent means unlimited, as in Pulsar; blocking is `blocked: true`. In a limit, an absent kind is not set,
so the next wider scope applies (`rgd.core.policies.precedence`); a kind without a rate is set to no limit, and so is a
backlog quota.

The format is strict (docs/configuration.md): an unknown key, a misspelt group, `true` in place of a number
or a name Pulsar would refuse is a fault, never a guess. Here is its schema, section by section; `group_entries` has the readers
of which it is made, and `document` the YAML. `rgd.app` decides when to read it again.

Equal values are one object, because most of 100,000 namespaces have one of a few limits.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from rgd.config.document import Document, parse_document, read_content
from rgd.config.faults import KeyPath, shown
from rgd.config.group_entries import Read, by_name, choice, filled, flag, made, part, rate, whole
from rgd.core.policies.model import (
    Attachments,
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    Backlogs,
    Group,
    Limit,
    Limits,
    LocalLimit,
    Rates,
    SharePolicyName,
    TopicSplit,
)
from rgd.core.policies.names import check_entity, check_subscription, parse_namespace, parse_topic
from rgd.core.policies.snapshot import PolicySnapshot

#: The keys at the top of a groups file; `rgd validate` distinguishes it from a settings file by them.
TOP_KEYS: Final = ("groups", "attach", "limits", "backlog_quotas")
_TOP_KEYS_TEXT: Final = "groups, attach, limits or backlog_quotas"

#: The largest values of Pulsar's long `limitSize` and int `limitTime`; larger ones are unlimited.
SIZE_BYTES_MAX: Final = (1 << 63) - 1
AGE_S_MAX: Final = (1 << 31) - 1

#: Most different values that are cached to be shared; further ones are separate objects.
_shared = lru_cache(4096)
_rates_of = _shared(Rates)
_local_limit = _shared(LocalLimit)
_backlog_quota = _shared(BacklogQuota)
_backlog_quotas = _shared(BacklogQuotas)


def load_groups(path: Path) -> PolicySnapshot:
    """Read a groups file.

    Raises:
        ConfigError: the file cannot be used; carries every fault.
    """
    return parse_groups(read_content(path), str(path))


def parse_groups(content: bytes, source: str) -> PolicySnapshot:
    """The policies of a groups file's content; `source` is the name that faults carry. Raises as `load_groups`."""
    document = parse_document(content, source)
    snapshot = snapshot_of(document)
    document.faults.raise_if_any()
    return snapshot


def snapshot_of(document: Document) -> PolicySnapshot:
    """The policy snapshot of a document; an empty one if the document has faults."""
    at = KeyPath(document.faults)
    if document.value is None:
        # A file that is being written may be empty; it must not lift every limit.
        at.wrong(f"expected {_TOP_KEYS_TEXT}, got an empty file; `{{}}` says no groups")
        return PolicySnapshot()
    top = at.mapping(document.value)
    at.check_keys(top, TOP_KEYS)
    groups = _groups(top.get("groups"), at.below("groups"))
    attach = _attachments(groups)(top.get("attach"), at.below("attach"))
    limits = _limits(top.get("limits"), at.below("limits"))
    backlogs = _backlogs(top.get("backlog_quotas"), at.below("backlog_quotas"))
    if document.faults.found:
        # Names that are none cannot be indexed.
        return PolicySnapshot()
    named = {name: _group(name, found) for name, found in groups.items()}
    return PolicySnapshot(named, attach, limits, backlogs=backlogs)


# --- groups ------------------------------------------------------------------------------------------


_rates = filled(made(_rates_of, messages=rate, bytes=rate))

#: The fields of a group, by their keys.
_groups = by_name(
    partial(check_entity, field="group"),
    filled(
        made(
            dict[str, Any],
            publish=_rates,
            dispatch=_rates,
            policy=choice(SharePolicyName),
            topic_split=choice(TopicSplit),
            blocked=flag,
            shadow=flag,
            soft=part,
        )
    ),
)


def _group(name: str, found: dict[str, Any]) -> Group:
    quota = Limit(**{kind: found.pop(kind) for kind in ("publish", "dispatch") if kind in found})
    return Group(name, quota, soft_ppm=found.pop("soft", None), **found)


# --- attach ------------------------------------------------------------------------------------------


def _attachments(groups: Collection[str]) -> Read[Attachments]:
    # One string object for each group, however often it is named.
    attached = partial(_attached, spelt={group: group for group in groups})
    return made(
        Attachments,
        tenants=by_name(partial(check_entity, field="tenant"), attached),
        namespaces=by_name(parse_namespace, attached),
        topics=by_name(parse_topic, attached),
    )


def _attached(group: object, at: KeyPath, spelt: Mapping[str, str]) -> str:
    if isinstance(group, str) and group in spelt:
        return spelt[group]
    hint = at.faults.meant(group, spelt) if isinstance(group, str) else ""
    if isinstance(group, int | float):
        hint = " (a name of digits wants quotes)"
    at.wrong(
        f"expected the name of a group that this file has under `groups`, got {shown(group)}{hint}"
    )
    return ""


# --- limits ------------------------------------------------------------------------------------------


def _no_rates(_value: object, at: KeyPath) -> None:
    at.wrong(
        "expected only dispatch for subscriptions, because they cannot publish; "
        "publish goes under namespaces or topics"
    )


_limit = filled(made(_local_limit, publish=_rates, dispatch=_rates))
_limit_of_each_subscription = filled(made(_local_limit, publish=_no_rates, dispatch=_rates))


def _limits_of(
    subscriptions: Mapping[str, Mapping[str, LocalLimit]] | None = None, **others: Any
) -> Limits:
    """Limits; subscriptions are entries of their topic: `TOPIC: {NAME: {dispatch: ...}}`."""
    by_topic = (subscriptions or {}).items()
    flat = {(topic, name): limit for topic, found in by_topic for name, limit in found.items()}
    return Limits(subscriptions=flat, **others)


_limits = made(
    _limits_of,
    broker=_limit,
    namespaces=by_name(parse_namespace, _limit),
    topics=by_name(parse_topic, _limit),
    subscriptions=by_name(parse_topic, filled(by_name(check_subscription, _limit))),
    namespace_subscriptions=by_name(parse_namespace, _limit_of_each_subscription),
    topic_subscriptions=by_name(parse_topic, _limit_of_each_subscription),
)


# --- backlog quotas ----------------------------------------------------------------------------------


def _size_quota(limit_bytes: int = -1, **action: BacklogAction) -> BacklogQuota:
    return _backlog_quota(size_bytes=limit_bytes, **action)


def _age_quota(limit_s: int = -1, **action: BacklogAction) -> BacklogQuota:
    return _backlog_quota(age_s=limit_s, **action)


_action = choice(BacklogAction)
_quotas = filled(
    made(
        _backlog_quotas,
        size=filled(made(_size_quota, limit_bytes=whole(SIZE_BYTES_MAX), action=_action)),
        age=filled(made(_age_quota, limit_s=whole(AGE_S_MAX), action=_action)),
    )
)

_backlogs = made(
    Backlogs, namespaces=by_name(parse_namespace, _quotas), topics=by_name(parse_topic, _quotas)
)
