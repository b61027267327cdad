"""`POST /v1/settle`: what a caller did not use of its grants, or used beyond them. One, or many in an array.

Laws: as `acquire`: names are the same, answers stand in order, a fault of one item stands in its place.
An answer says what was given back or charged, which may be less than was asked.

How much that is is decided by `rgd.core.buckets.settle`.
"""

from typing import Final

import msgspec
from msgspec import Struct

from rgd.adapters.http.acquire import name_of
from rgd.adapters.http.answers import ItemReason, item_reason
from rgd.adapters.http.array_body import ArrayReader, is_array
from rgd.adapters.http.bodies import SettleBody
from rgd.adapters.http.endpoint import Endpoint
from rgd.adapters.http.reply import Answering, Call, Reply, json_reply
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.turns import SLICE_WORK, Turns
from rgd.core.units import Pair
from rgd.errors import RgdError
from rgd.ports.answers import Answers
from rgd.ports.door import Scope

#: Points of work of an item that is at fault: its error text has to be made.
_FAULT_WORK: Final = 16

_many = ArrayReader(SettleBody)


class SettleAnswer(Struct, gc=False):
    """What was given back; below 0 what was charged."""

    messages: int
    bytes: int


class Settle:
    """Settles on behalf of HTTP callers."""

    def __init__(self, daemon: Answers, settings: HttpSettings, turns: Turns) -> None:
        self._settle_with = daemon.settle
        self._batch_max = settings.batch_max
        self._turns = turns

    @Endpoint(
        "POST",
        "/v1/settle",
        Scope.QUERY,
        {200: SettleAnswer | list[SettleAnswer | ItemReason]},
        (404,),
        body=SettleBody | list[SettleBody],
    )
    def answer(self, call: Call) -> Answering:
        """Give back what was granted and not used, or charge what was used beyond it."""
        body = call.body
        if not is_array(body):
            return json_reply(self._settle(_many.one.decode(body)))
        return self._answer_many(body)

    async def _answer_many(self, body: bytes) -> Reply:
        if not self._turns.take():
            await self._turns.next()
        items = _many.read(body, self._batch_max)
        answers: list[SettleAnswer | ItemReason] = []
        work = 0
        for item in items:
            if work >= SLICE_WORK:
                work = 0
                await self._turns.next()
            answer = self._answer_item(item)
            answers.append(answer)
            work += _FAULT_WORK if isinstance(answer, ItemReason) else 1
        return json_reply(answers)

    def _answer_item(self, item: SettleBody | msgspec.Raw) -> SettleAnswer | ItemReason:
        try:
            return self._settle(_many.item(item))
        except RgdError as exc:
            return item_reason(exc)

    def _settle(self, body: SettleBody) -> SettleAnswer:
        unused = Pair(body.messages or 0, body.bytes or 0)
        return SettleAnswer(*self._settle_with(name_of(body), unused))
