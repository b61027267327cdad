"""Names of tenants, namespaces, topics and groups, in one spelling.

Law: a local topic name (`eu`) and its full one (`persistent://acme/orders/eu`)
are the same topic everywhere, so both become the full one here, once.

A partition is part of the name (`eu-partition-0`), as in Pulsar. A policy of the
partitioned topic (`eu`) applies to each partition (`partitioned_topic_of`).
"""

import re
from typing import Final

from rgd.core.errors import InvalidName
from rgd.text import cut

#: Longest name in characters; Pulsar's own names are far shorter.
NAME_MAX: Final = 512
#: Most characters of a name that a reason quotes.
SHOWN_CHARS_MAX: Final = 80

#: The characters that Pulsar's NamedEntity allows in a tenant, namespace or group.
ENTITY: Final = re.compile(r"[-=:.0-9A-Z_a-z]+")
#: Control characters, and surrogates: no text that leaves the daemon can have one.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
#: A partition's number as in Pulsar: an int32 without leading zeros. Other endings are part of the
#: name.
_PARTITION_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_PARTITION_INDEX_MAX: Final = (1 << 31) - 1
_PARTITION: Final = "-partition-"
_DOMAINS: Final = ("persistent", "non-persistent")


def check_entity(name: str, field: str) -> str:
    """Return `name` if it is valid for a tenant, namespace or group.

    Raises:
        InvalidName: naming `field` and what was expected.
    """
    if len(name) > NAME_MAX or not ENTITY.fullmatch(name):
        raise InvalidName(
            f"{field}: expected 1 to {NAME_MAX} letters, digits or any of - = : . _, got {_shown(name)}"
        )
    return name


def namespace_of(tenant: str, namespace: str) -> str:
    """Join a tenant and a local namespace name; a full name with the same tenant is accepted."""
    check_entity(tenant, "tenant")
    head, slash, local = namespace.partition("/")
    if slash:
        if head != tenant:
            raise InvalidName(
                f"namespace: expected one of tenant {tenant!r}, got {_shown(namespace)}"
            )
        namespace = local
    return f"{tenant}/{check_entity(namespace, 'namespace')}"


def parse_namespace(full: str, field: str = "namespace") -> str:
    """Check a full namespace name, `tenant/namespace`."""
    tenant, slash, local = full.partition("/")
    if not slash:
        raise InvalidName(f"{field}: expected tenant/namespace, got {_shown(full)}")
    return f"{check_entity(tenant, field)}/{check_entity(local, field)}"


def topic_of(namespace: str, topic: str) -> str:
    """Give the full name of a topic in a full namespace.

    Raises:
        InvalidName: the name is malformed, or belongs to another namespace.
    """
    if "://" not in topic:
        _check_printable(topic, "topic")
        return f"persistent://{namespace}/{topic}"
    full = parse_topic(topic)
    if namespace_of_topic(full) != namespace:
        raise InvalidName(f"topic: expected one of namespace {namespace!r}, got {_shown(topic)}")
    return full


def parse_topic(full: str) -> str:
    """Check a full topic name, `persistent://tenant/namespace/topic`."""
    domain, scheme, rest = full.partition("://")
    parts = rest.split("/", 2)
    if not scheme or domain not in _DOMAINS or len(parts) != 3:
        raise InvalidName(
            f"topic: expected persistent://tenant/namespace/topic, got {_shown(full)}"
        )
    check_entity(parts[0], "topic's tenant")
    check_entity(parts[1], "topic's namespace")
    _check_printable(parts[2], "topic")
    return full


def namespace_of_topic(full: str) -> str:
    """The full namespace of a full topic name."""
    tenant, namespace, _ = full.partition("://")[2].split("/", 2)
    return f"{tenant}/{namespace}"


def partitioned_topic_of(full: str) -> str | None:
    """The partitioned topic that a topic (full name) is a partition of, if it is one."""
    partitioned, found, index = full.rpartition(_PARTITION)
    if not found or not _PARTITION_INDEX.fullmatch(index) or int(index) > _PARTITION_INDEX_MAX:
        return None
    # `persistent://t/n/-partition-0` has no name before its ending.
    return partitioned if partitioned.split("/", 4)[-1] else None


def tenant_of(namespace: str) -> str:
    """The tenant of a full namespace name."""
    return namespace.partition("/")[0]


def check_subscription(name: str) -> str:
    """Return `name` if it is valid for a subscription (anything printable, as in Pulsar)."""
    return _check_printable(name, "subscription")


def _check_printable(name: str, field: str) -> str:
    if not name or len(name) > NAME_MAX or _UNPRINTABLE.search(name):
        raise InvalidName(
            f"{field}: expected 1 to {NAME_MAX} printable characters, got {_shown(name)}"
        )
    return name


def _shown(name: str) -> str:
    return repr(cut(name, SHOWN_CHARS_MAX))
