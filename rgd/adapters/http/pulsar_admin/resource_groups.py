"""`resourcegroups`: groups in Pulsar's words.

Law: <= 0 is unlimited, a PUT keeps what it does not say, `publishRateInMsgs` is 32 bits wide. Where
Pulsar's codes contradict its own documentation these are right: deleting a missing group is 404, one
in use 409. What Pulsar's API cannot say of a group (blocked, shadow, policy) a PUT leaves
alone. A PUT is merged into what the table holds when it is written, so two at once lose nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from msgspec.structs import astuple

from rgd.adapters.http.endpoint import change, read
from rgd.adapters.http.errors import CallError
from rgd.adapters.http.paging import WholePage, a_page, names_reply
from rgd.adapters.http.pulsar_admin.bodies import ResourceGroup, ResourceGroupBody
from rgd.adapters.http.pulsar_admin.jackson import INT32_MAX, INT64_MAX, integer
from rgd.adapters.http.pulsar_admin.rate_forms import rate_over, units_of
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply
from rgd.adapters.http.strict import BodyDecoder
from rgd.core.errors import GroupInUse, UnknownGroup
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.names import check_entity
from rgd.core.policies.records import GROUP, Value
from rgd.ports.daemon import Daemon

_GROUPS: Final = "/admin/v2/resourcegroups"
_GROUP: Final = f"{_GROUPS}/{{group}}"

#: Pulsar's words, which scripts may look for.
MISSING: Final = "ResourceGroup does not exist"

_body = BodyDecoder(ResourceGroupBody, names_once=False)


class ResourceGroupCalls:
    """Resource groups in Pulsar's words."""

    def __init__(self, daemon: Daemon, writing: asyncio.Lock) -> None:
        self._daemon = daemon
        #: As in `attachments`: nothing is attached while it is looked whether something is.
        self._writing = writing

    @read(_GROUPS, a_page(list[str]), query=(WholePage,))
    async def list(self, call: Call) -> Reply:
        """The names of all groups, or a page of them."""
        return names_reply(call, self._daemon.snapshot().groups)

    @read(_GROUP, ResourceGroup, 404)
    async def get(self, call: Call) -> Reply:
        """A group's four rates."""
        group = self._daemon.snapshot().groups.get(call.path["group"])
        if group is None:
            raise CallError(404, MISSING)
        return json_reply(resource_group_of(group))

    @change("PUT", _GROUP, 409, body=ResourceGroupBody)
    async def put(self, call: Call) -> Reply:
        """Create a group, or change the rates that the body says (as Pulsar)."""
        name = check_entity(call.path["group"], "group")
        merged = _merge_of(_body.decode(call.body))

        def merge(known: Value) -> Value:
            group = known if isinstance(known, Group) else Group(name)
            return replace(group, quota=merged(group.quota))

        await self._daemon.change(GROUP + name, merge)
        return NO_CONTENT

    @change("DELETE", _GROUP, 404, 409)
    async def delete(self, call: Call) -> Reply:
        """Delete a group that nothing is attached to (as Pulsar)."""
        name = call.path["group"]
        try:
            async with self._writing:
                await self._daemon.delete_group(name)
        except UnknownGroup:
            raise CallError(404, MISSING) from None
        except GroupInUse as exc:
            raise CallError(409, f"ResourceGroup is in use: {exc}") from None
        return NO_CONTENT


def resource_group_of(group: Group) -> ResourceGroup:
    """A group in Pulsar's words: fractions rounded up, as 0 would be unlimited."""
    return ResourceGroup(*units_of(group.quota.publish), *units_of(group.quota.dispatch))


def _merge_of(body: ResourceGroupBody) -> Callable[[Limit], Limit]:
    """How a body changes a quota: what it does not say is kept."""
    names = ResourceGroupBody.__struct_encode_fields__
    said = [
        integer(value, name, most)
        for value, name, most in zip(astuple(body), names, (INT32_MAX, INT64_MAX) * 2, strict=True)
    ]

    def merged(quota: Limit) -> Limit:
        publish, dispatch = quota.publish, quota.dispatch
        known = (publish.messages, publish.bytes, dispatch.messages, dispatch.bytes)
        rates = [
            rate if new is None else rate_over(new) for new, rate in zip(said, known, strict=True)
        ]
        return Limit(Rates(*rates[:2]), Rates(*rates[2:]))

    return merged
