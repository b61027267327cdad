"""`/admin/v2`: resource groups and their attachment to namespaces, as Pulsar's admin API has them.

Law: an unchanged `pulsar-admin` works. Paths, bodies, words and leniency are
Pulsar's: unknown fields are passed over, <= 0 is unlimited, a PUT keeps what it
does not say, `publishRateInMsgs` is 32 bits wide. Where Pulsar's codes
contradict its own documentation these are right: deleting a missing group is
404, one in use 409 (design 5).

A namespace exists once named, so attaching one makes it. What Pulsar's API
cannot say of a group (blocked, shadow, policy) a PUT here leaves alone.
"""

import asyncio
import re
from dataclasses import replace
from typing import Final

from msgspec import Struct

from rgd.adapters.http.bodies import INT32_MAX, INT64_MAX, ResourceGroupBody
from rgd.adapters.http.errors import (
    BadBody,
    NamespaceMissing,
    PreconditionFailed,
    ResourceGroupInUse,
    ResourceGroupMissing,
)
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply
from rgd.adapters.http.strict import BodyDecoder
from rgd.core.errors import GroupInUse, InvalidName, UnknownGroup
from rgd.core.policies.model import Group, Limit, Rate, Rates, rate_of
from rgd.core.policies.names import check_entity, namespace_of
from rgd.core.units import MILLI
from rgd.ports.daemon import Daemon

#: What Pulsar answers for a rate that nobody set.
UNLIMITED: Final = -1

#: Pulsar's words, which scripts may look for.
MISSING: Final = "ResourceGroup does not exist"

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,19}")

_body = BodyDecoder(ResourceGroupBody)


class ResourceGroup(Struct, rename="camel", frozen=True):
    """Pulsar's ResourceGroup: rates per second, cluster-wide; -1 is unlimited."""

    publish_rate_in_msgs: int
    publish_rate_in_bytes: int
    dispatch_rate_in_msgs: int
    dispatch_rate_in_bytes: int


class PulsarAdmin:
    """Resource groups in Pulsar's words."""

    def __init__(self, daemon: Daemon, writing: asyncio.Lock) -> None:
        self._daemon = daemon
        #: A PUT reads what is before it writes: two writers at once must not undo each other.
        self._writing = writing

    async def list(self, _call: Call) -> Reply:
        """The names of all groups."""
        return json_reply(sorted(self._daemon.book().groups))

    async def get(self, call: Call) -> Reply:
        """A group's four rates."""
        group = self._daemon.book().groups.get(call.path["group"])
        if group is None:
            raise ResourceGroupMissing(MISSING)
        return json_reply(resource_group_of(group))

    async def put(self, call: Call) -> Reply:
        """Create a group, or change the rates that the body says."""
        name = check_entity(call.path["group"], "group")
        body = _body.decode(call.body)
        async with self._writing:
            group = self._daemon.book().groups.get(name, Group(name))
            await self._daemon.put_group(replace(group, quota=_merged(group.quota, body)))
        return NO_CONTENT

    async def delete(self, call: Call) -> Reply:
        """Delete a group that nothing is attached to."""
        name = call.path["group"]
        try:
            async with self._writing:
                await self._daemon.delete_group(name)
        except UnknownGroup:
            raise ResourceGroupMissing(MISSING) from None
        except GroupInUse as exc:
            raise ResourceGroupInUse(f"ResourceGroup is in use: {exc}") from None
        return NO_CONTENT

    async def get_namespace(self, call: Call) -> Reply:
        """The namespace's group: its bare name, or nothing."""
        namespace = self._known_namespace(call)
        # As Pulsar: text without quotes, whatever the content type says.
        return Reply(body=self._daemon.book().attach.namespaces.get(namespace, "").encode())

    async def attach_namespace(self, call: Call) -> Reply:
        """Put a namespace into a group, in place of the one it was in."""
        try:
            async with self._writing:
                await self._daemon.attach_namespace(_namespace(call), call.path["group"])
        except UnknownGroup:
            raise PreconditionFailed(MISSING) from None
        return NO_CONTENT

    async def detach_namespace(self, call: Call) -> Reply:
        """Take a namespace out of its group."""
        async with self._writing:
            await self._daemon.attach_namespace(self._known_namespace(call), None)
        return NO_CONTENT

    def _known_namespace(self, call: Call) -> str:
        namespace = _namespace(call)
        if namespace not in self._daemon.book().namespaces():
            raise NamespaceMissing("Namespace does not exist")
        return namespace


def resource_group_of(group: Group) -> ResourceGroup:
    """A group in Pulsar's words: fractions rounded up, as 0 would be unlimited."""
    publish, dispatch = group.quota.publish, group.quota.dispatch
    return ResourceGroup(
        min(_shown(publish.messages), INT32_MAX),
        _shown(publish.bytes),
        min(_shown(dispatch.messages), INT32_MAX),
        _shown(dispatch.bytes),
    )


def _shown(rate: Rate) -> int:
    return UNLIMITED if rate is None else max(1, -(-rate // MILLI))


def _merged(quota: Limit, body: ResourceGroupBody) -> Limit:
    publish, dispatch = quota.publish, quota.dispatch
    return Limit(
        Rates(
            _rate(body.publish_rate_in_msgs, publish.messages, "publishRateInMsgs", INT32_MAX),
            _rate(body.publish_rate_in_bytes, publish.bytes, "publishRateInBytes", INT64_MAX),
        ),
        Rates(
            _rate(body.dispatch_rate_in_msgs, dispatch.messages, "dispatchRateInMsgs", INT32_MAX),
            _rate(body.dispatch_rate_in_bytes, dispatch.bytes, "dispatchRateInBytes", INT64_MAX),
        ),
    )


def _rate(said: float | str | None, known: Rate, name: str, most: int) -> Rate:
    """Read a rate as Jackson does: `"100"` and 100.7 are 100; an empty string says nothing."""
    if isinstance(said, str):
        said = said.strip()
        if said and not _INTEGER.fullmatch(said):
            raise BadBody(f"{name}: expected an integer from {-most - 1} to {most}, got {said!r}")
    if said is None or said == "":
        return known
    rate = int(said)
    if not -most - 1 <= rate <= most:
        raise BadBody(f"{name}: expected an integer from {-most - 1} to {most}, got {rate}")
    return rate_of(rate)


def _namespace(call: Call) -> str:
    try:
        return namespace_of(call.path["tenant"], call.path["namespace"])
    except InvalidName as exc:
        raise PreconditionFailed(f"Tenant name or namespace is not valid: {exc}") from None
