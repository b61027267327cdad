"""`.../resourcegroup[/{group}]`: which group a namespace, tenant or topic is in.

Namespaces as Pulsar has them; tenants and topics, which Pulsar cannot attach, after the same pattern.
Each distinct group of a topic, its namespace and its tenant is charged, so what is shown is what is
attached to the very place.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rgd.adapters.http.plane_errors import PreconditionFailed
from rgd.adapters.http.pulsar_admin.places import (
    Named,
    Naming,
    check_known,
    namespace_named,
    tenant_named,
    topic_named,
)
from rgd.adapters.http.pulsar_admin.resource_groups import MISSING
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply
from rgd.core.errors import UnknownGroup
from rgd.core.policies.model import Attachments
from rgd.core.policies.records import NAMESPACE, TENANT, TOPIC
from rgd.ports.daemon import Daemon


@dataclass(frozen=True, slots=True)
class AttachmentPlace:
    """What may be put into a group."""

    naming: Naming
    prefix: str
    name: Callable[[Named], str]
    attached: Callable[[Attachments], Mapping[str, str]]


TENANTS = AttachmentPlace(
    tenant_named, TENANT, lambda named: named.tenant, lambda attach: attach.tenants
)
NAMESPACES = AttachmentPlace(
    namespace_named, NAMESPACE, lambda named: named.namespace, lambda attach: attach.namespaces
)


def topics(domain: str) -> AttachmentPlace:
    """Topics of `persistent` or `non-persistent`."""
    return AttachmentPlace(
        topic_named(domain), TOPIC, lambda named: named.topic, lambda attach: attach.topics
    )


class AttachmentCalls:
    """Attaches, shows and detaches at one sort of place."""

    def __init__(self, daemon: Daemon, place: AttachmentPlace, writing: asyncio.Lock) -> None:
        self._daemon = daemon
        self._place = place
        #: A group that is attached to and one that is deleted are two records: one write at a time.
        self._writing = writing

    async def get(self, call: Call) -> Reply:
        """The group: its bare name, or nothing."""
        named, snapshot = self._place.naming(call), self._daemon.snapshot()
        check_known(snapshot, named)
        group = self._place.attached(snapshot.attach).get(self._place.name(named), "")
        # As Pulsar: text without quotes, whatever the content type says.
        return Reply(body=group.encode())

    async def attach(self, call: Call) -> Reply:
        """Put it into a group, in place of the one it was in."""
        named = self._place.naming(call)
        try:
            async with self._writing:
                await self._daemon.attach(self._key(named), call.path["group"])
        except UnknownGroup:
            raise PreconditionFailed(MISSING) from None
        return NO_CONTENT

    async def detach(self, call: Call) -> Reply:
        """Take it out of its group."""
        named = self._place.naming(call)
        check_known(self._daemon.snapshot(), named)
        async with self._writing:
            await self._daemon.attach(self._key(named), None)
        return NO_CONTENT

    def _key(self, named: Named) -> str:
        return self._place.prefix + self._place.name(named)
