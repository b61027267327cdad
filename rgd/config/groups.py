"""The groups file: groups, their attachments, and further limits, as a `PolicySnapshot`.

Law: a file is accepted or refused as a whole, with all faults at once (file, line, dotted key,
expectation). <= 0 or absent means unlimited, as in Pulsar; blocking is `blocked: true`.

The format is strict (docs/configuration.md): an unknown key, a misspelt group, `true` in place of a number
or a name Pulsar would refuse is a fault, never a guess. This module has the sections `groups` and `attach`;
`group_limits` has `limits` and `backlog_quotas`, `group_entries` the common parts, and `document` the YAML. `rgd.app` decides when to read it again.
"""

from collections.abc import Callable, Collection
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from rgd.config.document import Document, read_document
from rgd.config.faults import KeyPath, shown
from rgd.config.group_entries import KIND_KEYS, check_name, choice, filled_mapping, limit_of
from rgd.config.group_limits import backlogs_of, limits_of
from rgd.core.policies.model import Attachments, Group, SharePolicyName, TopicSplit
from rgd.core.policies.names import check_entity, parse_namespace, parse_topic
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.shares.model import PPM

#: The keys at the top of a groups file; `rgd validate` distinguishes it from a settings file by them.
TOP_KEYS: Final = ("groups", "attach", "limits", "backlog_quotas")
_TOP_KEYS_TEXT: Final = "groups, attach, limits or backlog_quotas"

_Choice = TypeVar("_Choice", bound=StrEnum)

_GROUP_KEYS: Final = (*KIND_KEYS, "policy", "topic_split", "blocked", "shadow", "soft")
_ATTACH_CHECKS: Final[dict[str, Callable[[str], str]]] = {
    "tenants": partial(check_entity, field="tenant"),
    "namespaces": parse_namespace,
    "topics": parse_topic,
}


def load_groups(path: Path) -> PolicySnapshot:
    """Read a groups file.

    Raises:
        ConfigError: the file cannot be used; carries every fault.
    """
    document = read_document(path)
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
    groups_at = at.below("groups")
    groups = {
        name: _group(name, value, at=groups_at.below(name))
        for name, value in groups_at.mapping(top.get("groups")).items()
    }
    attach = _attachments(top.get("attach"), at.below("attach"), groups=groups)
    limits = limits_of(top.get("limits"), at.below("limits"))
    backlogs = backlogs_of(top.get("backlog_quotas"), at.below("backlog_quotas"))
    if document.faults.found:
        # Names that are none cannot be indexed.
        return PolicySnapshot()
    return PolicySnapshot(groups, attach, limits, backlogs=backlogs)


# --- groups ------------------------------------------------------------------------------------------


def _group(name: str, value: object, *, at: KeyPath) -> Group:
    check_name(name, partial(check_entity, field="group"), at=at)
    entry = filled_mapping(value, at)
    at.check_keys(entry, _GROUP_KEYS)
    return Group(
        name,
        quota=limit_of(entry, at),
        blocked=_flag(entry.get("blocked", False), at.below("blocked")),
        shadow=_flag(entry.get("shadow", False), at.below("shadow")),
        soft_ppm=_part(entry, "soft", at=at),
        policy=_word(entry, "policy", SharePolicyName, at=at),
        topic_split=_word(entry, "topic_split", TopicSplit, at=at),
    )


def _word(
    entry: dict[str, object], key: str, choices: type[_Choice], *, at: KeyPath
) -> _Choice | None:
    """One of a few choices, if the key is present."""
    return choice(entry[key], choices, at.below(key)) if key in entry else None


def _part(entry: dict[str, object], key: str, *, at: KeyPath) -> int | None:
    """A part in millionths, if the key is present."""
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        ppm = round(value * PPM) if 0 < value <= 1 else 0
        if ppm:
            return ppm
    at.below(key).wrong(
        f"expected a number above 0 and at most 1 (of the share), got {shown(value)}"
    )
    return None


def _flag(value: object, at: KeyPath) -> bool:
    if isinstance(value, bool):
        return value
    at.wrong(f"expected true or false, got {shown(value)}")
    return False


# --- attach ------------------------------------------------------------------------------------------


def _attachments(value: object, at: KeyPath, *, groups: Collection[str]) -> Attachments:
    entry = at.mapping(value)
    at.check_keys(entry, _ATTACH_CHECKS)
    return Attachments(
        **{
            level: _attached(entry.get(level), at.below(level), check=check, groups=groups)
            for level, check in _ATTACH_CHECKS.items()
        }
    )


def _attached(
    value: object, at: KeyPath, *, check: Callable[[str], str], groups: Collection[str]
) -> dict[str, str]:
    attached: dict[str, str] = {}
    # One string object for each group, however often it is named.
    spelt = {group: group for group in groups}
    for name, group in at.mapping(value).items():
        check_name(name, check, at=at.below(name))
        if isinstance(group, str) and group in spelt:
            attached[name] = spelt[group]
        else:
            hint = at.faults.meant(group, groups) if isinstance(group, str) else ""
            if isinstance(group, int | float):
                hint = " (a name of digits wants quotes)"
            at.below(name).wrong(
                f"expected the name of a group that this file has under `groups`, got {shown(group)}{hint}"
            )
    return attached
