"""`PATCH /v1/groups/{g}`: change what the body says of a group and keep the rest (RFC 7396).

Law: the merge happens where the policy is written, on what is known of it at that moment, and again
where another daemon was faster; so two people who change different things never undo each other,
as a GET followed by a PUT would. `null` takes a rate or a choice away (unlimited, the daemon's own).

As strict as `PUT`: an unknown field or a rate of 0 is 400, and nothing is changed. A group that does
not exist is made.
"""

import asyncio
from dataclasses import replace

from msgspec import UNSET, UnsetType

from rgd.adapters.http.bodies import GroupBody, RatesBody
from rgd.adapters.http.endpoint import Endpoint, ResponseSpec
from rgd.adapters.http.reply import Call, Reply, json_reply
from rgd.adapters.http.strict import BodyDecoder
from rgd.adapters.http.usual import BAD_BODY, NOT_NOW
from rgd.core.policies.model import Group, Limit, Rate, Rates, rate_of
from rgd.core.policies.names import check_entity
from rgd.core.policies.records import GROUP, Value
from rgd.core.shares.model import PPM
from rgd.ports.daemon import Daemon
from rgd.ports.door import Scope
from rgd.views.model import GroupView

_body = BodyDecoder(GroupBody)


class GroupPatch:
    """Changes parts of groups."""

    def __init__(self, daemon: Daemon, writing: asyncio.Lock) -> None:
        self._daemon = daemon
        #: Held while policies change: nobody deletes the group between the change and the answer.
        self._writing = writing

    async def patch(self, call: Call) -> Reply:
        """Change or make a group; answers with it, in force."""
        name = check_entity(call.path["group"], "group")
        body = _body.decode(call.body)
        was_there = True

        def merge(known: Value) -> Value:
            nonlocal was_there
            was_there = isinstance(known, Group)
            return patched(known if isinstance(known, Group) else Group(name), body)

        async with self._writing:
            await self._daemon.change(GROUP + name, merge)
            return json_reply(self._daemon.group(name), status=200 if was_there else 201)


def group_patch_endpoints(groups: GroupPatch) -> tuple[Endpoint, ...]:
    """The one call."""
    return (
        Endpoint(
            method="PATCH",
            path="/v1/groups/{group}",
            scope=Scope.ADMIN,
            handler=groups.patch,
            summary="Change what the body says of a group, and keep the rest.",
            body=GroupBody,
            answers={
                200: ResponseSpec("The group, in force here.", GroupView),
                201: ResponseSpec("The group, which is new, in force here.", GroupView),
                **BAD_BODY,
                **NOT_NOW,
            },
        ),
    )


def patched(group: Group, body: GroupBody) -> Group:
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
