"""`/v1/groups` and `/v1/brokers`: what the daemon knows, and groups as a person writes them.

`PUT` is strict and whole: the body is the group as groups.yaml has it, and what
it leaves out is at its default. Rates are numbers above 0, absent for unlimited;
0 is refused, because it reads like "nothing passes" and would mean the opposite
elsewhere (design 2, "Zero").
"""

import asyncio

from rgd.adapters.http.bodies import GroupBody, RatesBody
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply
from rgd.adapters.http.strict import BodyDecoder
from rgd.core.policies.model import Group, Limit, Rates, rate_of
from rgd.core.policies.names import check_entity
from rgd.core.policies.records import GROUP
from rgd.ports.daemon import Daemon

_body = BodyDecoder(GroupBody)


class Groups:
    """Groups and brokers, seen and changed."""

    def __init__(self, daemon: Daemon, writing: asyncio.Lock) -> None:
        self._daemon = daemon
        #: Held while groups are deleted or attached to: that looks before it writes.
        self._writing = writing

    async def list(self, _call: Call) -> Reply:
        """Every group, by name."""
        return json_reply(self._daemon.groups())

    async def get(self, call: Call) -> Reply:
        """One group."""
        return json_reply(self._daemon.group(check_entity(call.path["group"], "group")))

    async def put(self, call: Call) -> Reply:
        """Create or replace a group; answers with it, in force."""
        name = check_entity(call.path["group"], "group")
        group = group_of(name, _body.decode(call.body))
        await self._daemon.change(GROUP + name, lambda _known: group)
        return json_reply(self._daemon.group(name))

    async def delete(self, call: Call) -> Reply:
        """Delete a group that nothing is attached to."""
        name = check_entity(call.path["group"], "group")
        async with self._writing:
            await self._daemon.delete_group(name)
        return NO_CONTENT

    async def brokers(self, _call: Call) -> Reply:
        """Every member of the exchange."""
        return json_reply(self._daemon.brokers())


def group_of(name: str, body: GroupBody) -> Group:
    """The group that a body describes."""
    return Group(
        name,
        quota=Limit(_rates_of(body.publish), _rates_of(body.dispatch)),
        blocked=body.blocked,
        shadow=body.shadow,
        policy=body.policy,
        topic_split=body.topic_split,
    )


def _rates_of(body: RatesBody) -> Rates:
    return Rates(rate_of(body.messages), rate_of(body.bytes))
