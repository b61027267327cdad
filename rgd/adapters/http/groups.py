"""`/v1/groups` and `/v1/brokers`: what the daemon knows, and groups as a person writes them.

`PUT` is strict and whole: the body is the group as groups.yaml has it, and what
it leaves out is at its default. Rates are numbers above 0, absent for unlimited;
0 is refused, because it reads like "nothing passes" and would mean the opposite
elsewhere (docs/decisions/0008).

`PATCH` changes what the body says of a group and keeps the rest (RFC 7396), as strictly. The merge happens where the policy
is written, on what is known of it at that moment, and again where another daemon was faster; so two people who change
different things never undo each other, as a GET followed by a PUT would. `null` takes a rate or a choice away
(unlimited, the daemon's own). A group that does not exist is made.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from msgspec import UNSET, UnsetType

from rgd.adapters.http.bodies import GroupBody, RatesBody
from rgd.adapters.http.endpoint import Endpoint, change, read
from rgd.adapters.http.paging import Page, a_page, page_reply
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply
from rgd.adapters.http.strict import BodyDecoder
from rgd.core.policies.model import Group, Limit, Rate, Rates, rate_of
from rgd.core.policies.names import check_entity
from rgd.core.policies.records import GROUP, Value
from rgd.core.shares.model import PPM
from rgd.ports.daemon import Daemon
from rgd.ports.door import Scope
from rgd.views.model import BrokerView, GroupView

GROUPS: Final = "/v1/groups"
ONE_GROUP: Final = f"{GROUPS}/{{group}}"
BROKERS: Final = "/v1/brokers"

#: Groups of a page that are looked at together: some milliseconds.
GROUPS_AT_ONCE: Final = 32

_body = BodyDecoder(GroupBody)


class Groups:
    """Groups and brokers, seen and changed."""

    def __init__(self, daemon: Daemon, writing: asyncio.Lock) -> None:
        self._daemon = daemon
        #: Held while groups are changed in part, deleted or attached to: who looks before it writes, or after.
        self._writing = writing

    @read(GROUPS, a_page(list[GroupView]), query=(Page,))
    async def page(self, call: Call) -> Reply:
        """A page of groups by name: quota, share, usage map.

        A group that is deleted meanwhile is not in it.
        """
        return await page_reply(call, GROUPS, self._daemon.snapshot().groups, self._views)

    def _views(self, names: Sequence[str]) -> Iterator[tuple[str, Iterable[GroupView]]]:
        for at in range(0, len(names), GROUPS_AT_ONCE):
            for view in self._daemon.groups(names[at : at + GROUPS_AT_ONCE]):
                yield view.group, (view,)

    @read(ONE_GROUP, GroupView, 404)
    async def get(self, call: Call) -> Reply:
        """One group: quota, this broker's share, every row of the usage map."""
        name = check_entity(call.path["group"], "group")
        return json_reply(self._daemon.group(name))

    @change("PUT", ONE_GROUP, 409, shown=GroupView, body=GroupBody)
    async def put(self, call: Call) -> Reply:
        """Create a group, or replace it whole; the answer is the group in force here."""
        name = check_entity(call.path["group"], "group")
        group = _patched_group(Group(name), _body.decode(call.body))
        await self._daemon.change(GROUP + name, lambda _known: group)
        return json_reply(self._daemon.group(name))

    @Endpoint(
        "PATCH", ONE_GROUP, Scope.ADMIN, {200: GroupView, 201: GroupView}, (409,), body=GroupBody
    )
    async def patch(self, call: Call) -> Reply:
        """Change what the body says of a group, and keep the rest."""
        name = check_entity(call.path["group"], "group")
        body = _body.decode(call.body)
        was_there = True

        def merge(known: Value) -> Value:
            nonlocal was_there
            was_there = isinstance(known, Group)
            return _patched_group(known if isinstance(known, Group) else Group(name), body)

        async with self._writing:
            await self._daemon.change(GROUP + name, merge)
            return json_reply(self._daemon.group(name), status=200 if was_there else 201)

    @change("DELETE", ONE_GROUP, 404, 409)
    async def delete(self, call: Call) -> Reply:
        """Delete a group that nothing is attached to."""
        name = check_entity(call.path["group"], "group")
        async with self._writing:
            await self._daemon.delete_group(name)
        return NO_CONTENT

    @read(BROKERS, a_page(list[BrokerView]), query=(Page,))
    async def brokers(self, call: Call) -> Reply:
        """A page of who is in the exchange, since when, how stale, stock or rgd, and in which dialects."""
        return await page_reply(call, BROKERS, self._daemon.broker_names(), self._members)

    def _members(self, names: Sequence[str]) -> Iterator[tuple[str, Iterable[BrokerView]]]:
        return ((view.broker, (view,)) for view in self._daemon.brokers(names))


def _patched_group(group: Group, body: GroupBody) -> Group:
    """The group with what a body says of it; the rest stays."""
    policy, topic_split = body.policy, body.topic_split
    return replace(
        group,
        quota=Limit(
            _patched_rates(group.quota.publish, body.publish),
            _patched_rates(group.quota.dispatch, body.dispatch),
        ),
        policy=group.policy if policy is UNSET else policy,
        topic_split=group.topic_split if topic_split is UNSET else topic_split,
        soft_ppm=group.soft_ppm if body.soft is UNSET else _ppm(body.soft),
        shadow=group.shadow if body.shadow is UNSET else body.shadow,
        blocked=group.blocked if body.blocked is UNSET else body.blocked,
    )


def _ppm(part: float | None) -> int | None:
    return None if part is None else round(part * PPM)


def _patched_rates(rates: Rates, body: RatesBody) -> Rates:
    return Rates(_patched(rates.messages, body.messages), _patched(rates.bytes, body.bytes))


def _patched(rate: Rate, said: float | UnsetType | None) -> Rate:
    return rate if said is UNSET else rate_of(said)
