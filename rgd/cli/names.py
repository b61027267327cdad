"""Names as arguments of a command: `acme`, `acme/orders`, `acme/orders/eu`.

Law: malformed names are reported before any call or change.
"""

from collections.abc import Sequence

from rgd.cli.asking import SOURCE
from rgd.core.errors import InvalidName
from rgd.core.policies.names import (
    check_entity,
    check_subscription,
    namespace_of_topic,
    parse_namespace,
    parse_topic,
    topic_of,
)
from rgd.errors import ConfigError, Fault


def places_of(names: Sequence[str]) -> list[str]:
    """Full names of tenants (one part), namespaces (two) and topics (more, or with `://`).

    Raises:
        ConfigError: every name that is malformed.
    """
    faults, places = [], []
    for name in names:
        try:
            places.append(_place_of(name))
        except InvalidName as error:
            faults.append(Fault(SOURCE, name[:80], str(error)))
    if faults:
        raise ConfigError(*faults)
    return places


def check_group(name: str) -> None:
    """Refuse a name that is invalid for a group.

    Raises:
        ConfigError: it cannot.
    """
    try:
        check_entity(name, "group")
    except InvalidName as error:
        raise ConfigError(Fault(SOURCE, "GROUP", str(error))) from error


def query_of(name: str, subscription: str | None) -> dict[str, str]:
    """The parameters of `/v1/explain` for a namespace or topic, and an optional subscription.

    Raises:
        ConfigError: a name is malformed, or the subscription has no topic.
    """
    [place] = places_of([name])
    if "/" not in place:
        expected = "expected TENANT/NAMESPACE or TENANT/NAMESPACE/TOPIC"
        raise ConfigError(Fault(SOURCE, "NAME", f"{expected}, got {name!r}"))
    is_topic = "://" in place
    tenant, _, namespace = (namespace_of_topic(place) if is_topic else place).partition("/")
    query = {"tenant": tenant, "namespace": namespace}
    if is_topic:
        query["topic"] = place
    if subscription is None:
        return query
    if not is_topic:
        expected = "expected a topic, TENANT/NAMESPACE/TOPIC, whose subscription it is"
        raise ConfigError(Fault(SOURCE, "--subscription", expected))
    try:
        query["subscription"] = check_subscription(subscription)
    except InvalidName as error:
        raise ConfigError(Fault(SOURCE, "--subscription", str(error))) from error
    return query


def _place_of(name: str) -> str:
    if "://" in name:
        return parse_topic(name)
    parts = name.split("/", 2)
    if len(parts) == 1:
        return check_entity(name, "tenant")
    namespace = parse_namespace("/".join(parts[:2]))
    return namespace if len(parts) == 2 else topic_of(namespace, parts[2])
