"""Converts faults of the Pulsar client into rgd's errors, with a remedy.

Law: nothing above this package sees an exception or a result of pulsar-client. A fault that a broker, a
network or an operator can fix is `ExchangeDown`, with its location and a remedy. A fault that only a change
of the settings can fix is `ConfigError`.
The client uses the same names for exceptions and for results of a send (`Timeout`,
`AuthenticationError`), so one table of names serves both.
"""

import re
from typing import Final

from rgd.core.policies.names import namespace_of_topic
from rgd.errors import ConfigError, Fault, RgdError
from rgd.ports.exchange import ExchangeDown

_TOPIC: Final = re.compile(r"(non-)?persistent://[^/]+/[^/]+/.+")

_CHECK_ACCESS: Final = (
    "check exchange.token_file (or exchange.tls_cert and exchange.tls_key): whom they name needs to "
    "produce to and consume from the topic (docs/security.md)"
)
_REMEDIES: Final = {
    "AuthenticationError": _CHECK_ACCESS,
    "AuthorizationError": _CHECK_ACCESS,
    "ErrorGettingAuthenticationData": _CHECK_ACCESS,
    "ProducerQueueIsFull": "too many messages wait for an answer already; it takes more once it answers",
    "MessageTooBig": "the broker takes only smaller messages; raise its maxMessageSize to 2 MiB or more",
}
_CHECK_BROKER: Final = (
    "check that a Pulsar broker listens there and can be reached from here, or set exchange.url (a token or "
    "certificate that is refused or not trusted looks the same: then check exchange.token_file, or "
    "exchange.tls_ca, tls_cert and tls_key)"
)


class TopicMissing(ExchangeDown):
    """The broker reports that the topic or namespace does not exist."""


def translate(fault: str, *, url: str, topic: str, reason: str = "", needs: str = "") -> RgdError:
    """The error for a fault with the client's own name of it, such as `Timeout`.

    Args:
        fault: the name.
        url: the broker's.
        topic: the topic.
        reason: the broker's own words, if known.
        needs: the action that is not permitted, if it is an `AuthorizationError`.
    """
    if fault == "InvalidTopicName":
        expected = "expected persistent://tenant/namespace/name or non-persistent://..."
        return ConfigError(
            Fault("settings", "exchange.topic", f"not a topic: {topic!r}; {expected}")
        )
    said = f"{fault} ({reason})" if reason else fault
    namespace = namespace_of_topic(topic)
    if fault == "TopicNotFound":
        remedy = (
            f"the namespace {namespace} is missing: set exchange.admin_url and rgd makes it, "
            f"or {namespace_commands(namespace)}\nIf it exists, the broker makes no topics: run "
            f"pulsar-admin namespaces set-auto-topic-creation {namespace} --enable --type non-partitioned"
        )
        return TopicMissing(f"{topic} at {url}: {said}; {remedy}")
    remedy = _REMEDIES.get(fault, _CHECK_BROKER)
    if fault == "TopicTerminated":
        remedy = (
            f"nobody can write to it any more: run pulsar-admin topics delete --force {topic}, "
            "and daemons that run make it again with all they know"
        )
    if fault == "AuthorizationError" and needs:
        remedy = (
            f"`{needs}` is missing: run pulsar-admin namespaces grant-permission {namespace} "
            f"--role ROLE --actions produce,consume, or {_CHECK_ACCESS}"
        )
    return ExchangeDown(f"{topic} at {url}: {said}; {remedy}")


def check_topic(topic: str) -> None:
    """Refuse topics that the client would refuse, before any connection.

    Raises:
        ConfigError: it is not the full name of a topic.
    """
    if not _TOPIC.fullmatch(topic):
        raise translate("InvalidTopicName", url="", topic=topic)


def invalid_url(url: str, reason: str) -> ConfigError:
    """The error for a service URL that the client does not accept."""
    expected = "expected pulsar://HOST:PORT[,HOST:PORT...] or pulsar+ssl://..."
    return ConfigError(
        Fault("settings", "exchange.url", f"not a Pulsar URL: {url!r} ({reason}); {expected}")
    )


def namespace_commands(namespace: str) -> str:
    """The commands to create the namespace with unlimited retention, and compaction, by hand.

    Without that retention Pulsar deletes the policies topic a minute after its last reader has left.
    Without compaction a starting daemon reads every change that was ever made.
    """
    tenant = namespace.partition("/")[0]
    return (
        "run (the first only if there is no such tenant)"
        f"\n  pulsar-admin tenants create {tenant}"
        f"\n  pulsar-admin namespaces create {namespace}"
        f"\n  pulsar-admin namespaces set-retention {namespace} --size -1 --time -1"
        f"\n  pulsar-admin namespaces set-compaction-threshold {namespace} --threshold 1M"
    )
