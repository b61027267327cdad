"""What a path of `/admin/v2` names, in one spelling, and whether it exists.

Law: a local topic name, its percent-encoded form and its full name are one topic. A namespace exists
once anything of it was named, a tenant while anything of it is; what does not is 404, a name that can
be none 412, in Pulsar's words. Topics and subscriptions always exist: rgd sees no topics.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import unquote_plus

from msgspec import Meta, Struct

from rgd.adapters.http.errors import CallError
from rgd.adapters.http.reply import Call
from rgd.core.errors import InvalidName
from rgd.core.policies.names import (
    check_entity,
    check_subscription,
    namespace_of,
    parse_topic,
    topic_of,
)
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.daemon import Daemon

#: Where the topic stands in `/admin/v2/persistent/tenant/namespace/topic`.
_TOPIC_PART: Final = 6


@dataclass(frozen=True, slots=True)
class Named:
    """A tenant, a namespace of it, a topic, a subscription: full names, the narrowest is meant."""

    tenant: str
    namespace: str = ""
    topic: str = ""
    subscription: str = ""


class TopicQuery(Struct, rename="camel"):
    """Pulsar's clients send these; there is one cluster and every daemon answers for itself."""

    is_global: Annotated[bool, Meta(title="Ignored.")] = False
    authoritative: Annotated[bool, Meta(title="Ignored.")] = False


class AppliedQuery(Struct):
    """Of a topic's policies."""

    applied: Annotated[bool, Meta(title="What is in force there, wherever it was set.")] = False


#: Reads what the path of a call names; CallError where that can be no name.
Naming = Callable[[Call], Named]


def tenant_named(call: Call) -> Named:
    """The tenant."""
    try:
        return Named(check_entity(call.path["tenant"], "tenant"))
    except InvalidName as exc:
        raise CallError(412, f"Tenant name is not valid: {exc}") from None


def namespace_named(call: Call) -> Named:
    """The namespace."""
    try:
        tenant = check_entity(call.path["tenant"], "tenant")
        return Named(tenant, namespace_of(tenant, call.path["namespace"]))
    except InvalidName as exc:
        raise CallError(412, f"Namespace name is not valid: {exc}") from None


def topic_named(domain: str) -> Naming:
    """Reads the topic of paths that begin with `persistent` or `non-persistent`."""

    def named(call: Call) -> Named:
        try:
            tenant = check_entity(call.path["tenant"], "tenant")
            namespace = namespace_of(tenant, call.path["namespace"])
            return Named(tenant, namespace, _topic(domain, namespace, _local_topic(call)))
        except InvalidName as exc:
            raise CallError(412, f"Topic name is not valid: {exc}") from None

    return named


def subscription_named(domain: str) -> Naming:
    """Reads the subscription of paths that begin with `persistent` or `non-persistent`."""
    topic_of_call = topic_named(domain)

    def named(call: Call) -> Named:
        of = topic_of_call(call)
        try:
            subscription = check_subscription(call.path["subscription"])
        except InvalidName as exc:
            raise CallError(412, f"Subscription name is not valid: {exc}") from None
        return Named(of.tenant, of.namespace, of.topic, subscription)

    return named


def is_tenant(snapshot: PolicySnapshot, tenant: str) -> bool:
    """Whether anything of a tenant is named."""
    return tenant in snapshot.attach.tenants or tenant in snapshot.existing


def check_known(snapshot: PolicySnapshot, named: Named) -> None:
    """Refuse what does not exist.

    Raises:
        CallError
    """
    if not named.namespace:
        if not is_tenant(snapshot, named.tenant):
            raise CallError(404, "Tenant does not exist")
    elif named.namespace not in snapshot.existing:
        raise CallError(404, "Namespace not found" if named.topic else "Namespace does not exist")


def _local_topic(call: Call) -> str:
    """The topic as `pulsar-admin` writes it: form-encoded, so that a space is `+`."""
    try:
        return unquote_plus(call.raw_path.split("/")[_TOPIC_PART], errors="strict")
    except UnicodeDecodeError:
        raise InvalidName("topic: expected percent-encoded UTF-8") from None


def _topic(domain: str, namespace: str, topic: str) -> str:
    if "://" not in topic:
        return parse_topic(f"{domain}://{namespace}/{topic}")
    full = topic_of(namespace, topic)
    if full.partition("://")[0] != domain:
        raise InvalidName(f"topic: expected a {domain} one, got {topic!r}")
    return full


class PlaceCalls:
    """Calls at one sort of place.

    Args:
        daemon: who answers.
        naming: reads which place it is.
    """

    def __init__(self, daemon: Daemon, naming: Naming) -> None:
        self._daemon = daemon
        self._naming = naming

    def _known(self, call: Call) -> tuple[Named, PolicySnapshot]:
        """The place, which exists, and the policies in force."""
        named, snapshot = self._naming(call), self._daemon.snapshot()
        check_known(snapshot, named)
        return named, snapshot
