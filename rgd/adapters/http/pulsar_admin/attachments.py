"""`.../resourcegroup[/{group}]`: which group a namespace, tenant or topic is in.

Namespaces as Pulsar has them; tenants and topics, which Pulsar cannot attach, after the same pattern.
Each distinct group of a topic, its namespace and its tenant is charged, so what is shown is what is
attached to the very place.
"""

import asyncio

from rgd.adapters.http.endpoint import change, read
from rgd.adapters.http.errors import CallError
from rgd.adapters.http.pulsar_admin.places import Named, Naming, PlaceCalls
from rgd.adapters.http.pulsar_admin.resource_groups import MISSING
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply
from rgd.core.errors import UnknownGroup
from rgd.core.policies.records import NAMESPACE, TENANT, TOPIC, value_in
from rgd.ports.daemon import Daemon


class AttachmentCalls(PlaceCalls):
    """Attaches, shows and detaches at one sort of place."""

    def __init__(self, daemon: Daemon, naming: Naming, writing: asyncio.Lock) -> None:
        super().__init__(daemon, naming)
        #: A group that is attached to and one that is deleted are two records: one write at a time.
        self._writing = writing

    @read("/resourcegroup", str, 404, 412)
    async def get(self, call: Call) -> Reply:
        """The group of {place}: its bare name, without quotes as in Pulsar, or nothing."""
        named, snapshot = self._known(call)
        # As Pulsar: text without quotes, whatever the content type says.
        return Reply(body=str(value_in(snapshot, _key(named)) or "").encode())

    @change("POST", "/resourcegroup/{group}", 409, 412)
    async def attach(self, call: Call) -> Reply:
        """Put {place} into a group, in place of the one it was in."""
        named = self._naming(call)
        try:
            async with self._writing:
                await self._daemon.attach(_key(named), call.path["group"])
        except UnknownGroup:
            raise CallError(412, MISSING) from None
        return NO_CONTENT

    @change("DELETE", "/resourcegroup", 404, 409, 412)
    async def detach(self, call: Call) -> Reply:
        """Take {place} out of its group."""
        named, _ = self._known(call)
        async with self._writing:
            await self._daemon.attach(_key(named), None)
        return NO_CONTENT


def _key(named: Named) -> str:
    """Of the record that says it."""
    if named.topic:
        return TOPIC + named.topic
    return NAMESPACE + named.namespace if named.namespace else TENANT + named.tenant
