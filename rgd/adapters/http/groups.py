"""`/v1/groups` and `/v1/brokers`: what the daemon knows, and groups as a person writes them.

`PUT` is strict and whole: the body is the group as groups.yaml has it, and what
it leaves out is at its default. Rates are numbers above 0, absent for unlimited;
0 is refused, because it reads like "nothing passes" and would mean the opposite
elsewhere (docs/decisions/0008).
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from rgd.adapters.http.bodies import GroupBody
from rgd.adapters.http.group_patch import patched
from rgd.adapters.http.paging import PAGE_BYTES, Page, page_names, page_of
from rgd.adapters.http.reply import (
    NO_CONTENT,
    NO_HEADERS,
    Call,
    Reply,
    array_of,
    encode,
    json_reply,
)
from rgd.adapters.http.strict import BodyDecoder
from rgd.adapters.http.turns import Turns
from rgd.core.policies.model import Group
from rgd.core.policies.names import check_entity
from rgd.core.policies.records import GROUP
from rgd.ports.daemon import Daemon

GROUPS: Final = "/v1/groups"
BROKERS: Final = "/v1/brokers"

#: Brokers that are looked at in one slice of work, and the most groups that are asked for at once.
BROKERS_SLICE: Final = 64
GROUPS_SLICE: Final = 64

_body = BodyDecoder(GroupBody)


class Groups:
    """Groups and brokers, seen and changed."""

    def __init__(self, daemon: Daemon, writing: asyncio.Lock, turns: Turns | None = None) -> None:
        self._daemon = daemon
        self._turns = turns or Turns()
        #: Held while groups are deleted or attached to: that looks before it writes.
        self._writing = writing

    async def list(self, call: Call) -> Reply:
        """A page of groups, by name; a group that is deleted meanwhile is not in it."""
        page = page_of(call)
        names, has_more = await page_names(self._daemon.snapshot().groups, page, self._turns)
        written: list[bytes] = []
        size = done = 0
        while done < len(names) and size <= PAGE_BYTES:
            part = self._daemon.groups(names[done : done + GROUPS_SLICE])
            views = list(map(encode, part.views))
            written += views
            size += sum(map(len, views))
            done += part.done
            await self._turns.next(part.work)
        has_more |= done < len(names)
        last = names[done - 1] if done else page.after
        return Reply(200, array_of(written), _link(page, GROUPS, last, has_more=has_more))

    async def get(self, call: Call) -> Reply:
        """One group."""
        name = check_entity(call.path["group"], "group")
        return json_reply(self._daemon.group(name))

    async def put(self, call: Call) -> Reply:
        """Create or replace a group; answers with it, in force."""
        name = check_entity(call.path["group"], "group")
        group = patched(Group(name), _body.decode(call.body))
        await self._daemon.change(GROUP + name, lambda _known: group)
        return json_reply(self._daemon.group(name))

    async def delete(self, call: Call) -> Reply:
        """Delete a group that nothing is attached to."""
        name = check_entity(call.path["group"], "group")
        async with self._writing:
            await self._daemon.delete_group(name)
        return NO_CONTENT

    async def brokers(self, call: Call) -> Reply:
        """A page of the members of the exchange, by name."""
        page = page_of(call)
        names, has_more = await page_names(self._daemon.broker_names(), page, self._turns)
        written: list[bytes] = []
        for begin in range(0, len(names), BROKERS_SLICE):
            views = self._daemon.brokers(names[begin : begin + BROKERS_SLICE])
            written += map(encode, views)
            await self._turns.next(len(views))
        last = names[-1] if names else ""
        return Reply(200, array_of(written), _link(page, BROKERS, last, has_more=has_more))


def _link(page: Page, path: str, last: str, *, has_more: bool) -> Mapping[str, str]:
    return page.link_after(path, last) if has_more else NO_HEADERS
