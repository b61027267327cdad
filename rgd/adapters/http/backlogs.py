"""`/v1/topics/.../backlog`, `/v1/backlog` and `/v1/evictions`: backlogs in, what to skip out.

Law: a report is taken or refused as a whole, and one item's fault stops no other. The answer names
what the last check said to skip on the topic and what the report does not yet show as done.

A push needs the scope `query`: it is the broker that asks `acquire` for the same topic. With a
wrong report it could block publishing to a topic, which it can do as well by emptying its buckets;
and it can make nobody skip messages, because only polled topics' evictions are carried out here.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from rgd.adapters.http.answers import ItemReason, item_reason
from rgd.adapters.http.array_body import ArrayReader
from rgd.adapters.http.bodies import BacklogBody, BacklogItem, SubscriptionBody
from rgd.adapters.http.endpoint import Endpoint, read
from rgd.adapters.http.errors import CallError
from rgd.adapters.http.paging import Page, a_page, page_reply
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.shown import cut
from rgd.adapters.http.strict import BodyDecoder
from rgd.core.backlog.model import (
    EVENT_TOPICS_MAX,
    Ledger,
    Position,
    Source,
    SubscriptionBacklog,
    TopicBacklog,
    check_backlog,
)
from rgd.core.bounds import BOUNDS
from rgd.core.policies.names import check_entity, namespace_of, parse_topic, topic_of
from rgd.errors import RgdError
from rgd.ports.backlogs import BacklogDoor
from rgd.ports.door import Scope
from rgd.views.backlog import BacklogView, BlockedView, EvictionView

_TOPIC: Final = "/v1/topics/{tenant}/{namespace}/{topic}/backlog"
_EVICTIONS: Final = "/v1/evictions"

_body = BodyDecoder(BacklogBody)
_array = ArrayReader(BacklogItem, may_be_large=True)


class EvictionBody(Struct, forbid_unknown_fields=True):
    """An eviction that was carried out."""

    #: The full name.
    topic: str
    subscription: str


_eviction = BodyDecoder(EvictionBody)


class PushAnswer(Struct):
    """What is to be done about a topic whose backlog was pushed."""

    topic: str
    evictions: tuple[EvictionView, ...]
    #: Null: publishing is not blocked.
    blocked: BlockedView | None


class Backlogs:
    """Takes backlogs from the brokers of their topics."""

    def __init__(self, door: BacklogDoor, settings: HttpSettings) -> None:
        self._door = door
        self._batch_max = settings.batch_max

    @Endpoint("PUT", _TOPIC, Scope.QUERY, {200: PushAnswer}, body=BacklogBody)
    async def put(self, call: Call) -> Reply:
        """A topic's broker says how its backlog stands; learns what to skip, and whether to publish."""
        report = self._report_of(_topic_of(call), _body.decode(call.body))
        self._door.report((report,))
        return json_reply(self._answer(report))

    @Endpoint(
        "POST",
        "/v1/backlog",
        Scope.QUERY,
        {200: list[PushAnswer | ItemReason]},
        body=list[BacklogItem],
    )
    async def post(self, call: Call) -> Reply:
        """The same for many topics, in an array; answers in order."""
        items = _array.read(call.body, self._batch_max)
        answers: list[PushAnswer | ItemReason] = []
        for begin in range(0, len(items), EVENT_TOPICS_MAX):
            answers += self._take(items[begin : begin + EVENT_TOPICS_MAX])
            await asyncio.sleep(0)
        return json_reply(answers)

    @read(_TOPIC, BacklogView, 404)
    async def get(self, call: Call) -> Reply:
        """A topic's backlog, its oldest message as the last check found it, and its quota."""
        topic = _topic_of(call)
        view = self._door.backlog(topic)
        if view is None:
            reason = f"the backlog of {topic} is not known: nobody reported it lately"
            raise CallError(404, reason)
        return json_reply(view)

    @Endpoint("DELETE", _TOPIC, Scope.QUERY, {204: None})
    async def delete(self, call: Call) -> Reply:
        """The topic is served elsewhere now: forget it, if it was pushed."""
        self._door.withdraw(Source.PUSHED, (_topic_of(call),))
        return NO_CONTENT

    @read(_EVICTIONS, a_page(list[EvictionView]), query=(Page,))
    async def evictions(self, call: Call) -> Reply:
        """What is to be skipped: a page of topics, each subscription an entry."""
        return await page_reply(call, _EVICTIONS, self._door.evicting(), self._evictions)

    def _evictions(self, topics: Sequence[str]) -> Iterator[tuple[str, Iterable[EvictionView]]]:
        views = ((topic, self._door.backlog(topic)) for topic in topics)
        return ((topic, () if view is None else view.evictions) for topic, view in views)

    @Endpoint("POST", _EVICTIONS, Scope.QUERY, {204: None}, (404,), body=EvictionBody)
    async def confirm(self, call: Call) -> Reply:
        """An eviction that was named was carried out: it counts in the metrics, once for each report."""
        body = _eviction.decode(call.body)
        topic = parse_topic(body.topic)
        if not self._door.confirm(topic, body.subscription):
            raise CallError(
                404,
                f"no eviction of subscription {cut(body.subscription)} of {cut(topic)} is named now",
            )
        return NO_CONTENT

    def _take(self, items: Sequence[BacklogItem | msgspec.Raw]) -> list[PushAnswer | ItemReason]:
        reports = [*map(self._read, items)]
        # Of two reports of one topic the later one counts, and both are answered by it.
        last = {one.topic: one for one in reports if isinstance(one, TopicBacklog)}
        self._door.report([*last.values()])
        return [
            self._answer_item(last[one.topic]) if isinstance(one, TopicBacklog) else one
            for one in reports
        ]

    def _read(self, item: BacklogItem | msgspec.Raw) -> TopicBacklog | ItemReason:
        try:
            body = _array.item(item)
            tenant = check_entity(body.tenant, "tenant")
            return self._report_of(topic_of(namespace_of(tenant, body.namespace), body.topic), body)
        except RgdError as exc:
            return item_reason(exc)

    def _report_of(self, topic: str, body: BacklogBody) -> TopicBacklog:
        read_at_ms = _or_none(body.read_at_ms)
        report = TopicBacklog(
            topic,
            tuple(
                Ledger(one.id, one.entries, one.bytes, _or_none(one.closed_at_ms))
                for one in body.ledgers
            ),
            tuple(map(_subscription_of, body.subscriptions)),
            Source.PUSHED,
            self._door.unix_ms() if read_at_ms is None else read_at_ms,
        )
        check_backlog(report)
        return report

    def _answer_item(self, report: TopicBacklog) -> PushAnswer | ItemReason:
        try:
            return self._answer(report)
        except CallError as exc:
            return item_reason(exc)

    def _answer(self, report: TopicBacklog) -> PushAnswer:
        view = self._door.backlog(report.topic)
        if view is None or not self._door.is_kept(report):
            most = BOUNDS.backlog
            raise CallError(
                503,
                f"backlogs: expected at most {most.topics_max} topics with {most.subscriptions_max} "
                f"subscriptions and {most.ledgers_max} ledgers; push fewer of them to this daemon",
            )
        return PushAnswer(report.topic, view.evictions, view.blocked)


def _topic_of(call: Call) -> str:
    tenant = check_entity(call.path["tenant"], "tenant")
    return topic_of(namespace_of(tenant, call.path["namespace"]), call.path["topic"])


def _subscription_of(body: SubscriptionBody) -> SubscriptionBacklog:
    oldest = None if body.oldest is UNSET else body.oldest
    return SubscriptionBacklog(
        body.name,
        None if oldest is None else Position(oldest.ledger, oldest.entry),
        _or_none(body.broker_time_ms),
        _or_none(body.publish_time_ms),
        _or_none(body.messages),
    )


def _or_none(number: int | UnsetType | None) -> int | None:
    return None if number is UNSET else number
