"""`dispatchRate`, `subscriptionDispatchRate` and `publishRate` at namespaces, topics and subscriptions.

Law: a call changes one kind at one place and leaves the other alone, also where two daemons write at
once: the body is merged into what the table holds when it is written. An empty body is as Pulsar's:
it takes a namespace's rate away and leaves a topic's.

A limit is of each broker alone. Which of several places holds is `rgd.core.policies.precedence`'s
business; `applied` shows it.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from rgd.adapters.http.pulsar_admin.jackson import says_nothing
from rgd.adapters.http.pulsar_admin.places import Named, Naming, check_known
from rgd.adapters.http.pulsar_admin.rate_forms import NO_DISPATCH_RATE, Edit, RateForm
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply, says_true
from rgd.core.policies.model import NOT_SET, Limits, LocalLimit
from rgd.core.policies.precedence import names_of
from rgd.core.policies.records import (
    LIMIT_NAMESPACE,
    LIMIT_NAMESPACE_SUBSCRIPTIONS,
    LIMIT_SUBSCRIPTION,
    LIMIT_TOPIC,
    LIMIT_TOPIC_SUBSCRIPTIONS,
    Value,
    subscription_name,
)
from rgd.ports.daemon import Daemon

_NOTHING: Final = Reply()


class RateCalls:
    """Sets, shows and takes away one kind of rate at one sort of place."""

    def __init__(
        self,
        daemon: Daemon,
        naming: Naming,
        form: RateForm,
        *,
        of_subscriptions: bool = False,
        absent: Reply = _NOTHING,
    ) -> None:
        self._daemon = daemon
        self._naming = naming
        self._form = form
        #: Whether it is the rate of each subscription there.
        self._of_subscriptions = of_subscriptions
        #: Pulsar's answer where it is not set differs from rate to rate.
        self._absent = absent

    async def get(self, call: Call) -> Reply:
        """The rate that is set at the very place."""
        named, snapshot = self._naming(call), self._daemon.snapshot()
        check_known(snapshot, named)
        found = self._found(snapshot.limits, named)
        shown = self._shown(next(found))
        return self._absent if shown is None else json_reply(shown)

    async def get_applied(self, call: Call) -> Reply:
        """The same; with `applied` the dispatch rate that is in force there."""
        if not says_true(call, "applied"):
            return await self.get(call)
        named, snapshot = self._naming(call), self._daemon.snapshot()
        check_known(snapshot, named)
        found = map(self._shown, self._found(snapshot.limits, named))
        return json_reply(next(filter(None, found), NO_DISPATCH_RATE))

    async def put(self, call: Call) -> Reply:
        """Set the rate, whole."""
        named = self._naming(call)
        if not says_nothing(call.body):
            await self._change(named, self._form.read(call.body))
        elif not named.topic:
            await self._change(named, self._form.unset)
        return NO_CONTENT

    async def delete(self, call: Call) -> Reply:
        """Take the rate away; the next wider place says it then."""
        named = self._naming(call)
        check_known(self._daemon.snapshot(), named)
        await self._change(named, self._form.unset)
        return NO_CONTENT

    async def _change(self, named: Named, edit: Edit) -> None:
        def merge(known: Value) -> Value:
            limit = edit(known if isinstance(known, LocalLimit) else NOT_SET)
            return None if limit == NOT_SET else limit

        await self._daemon.change(self._key(named), merge)

    def _shown(self, limit: LocalLimit | None) -> Struct | None:
        return None if limit is None else self._form.shown(limit)

    def _found(self, limits: Limits, named: Named) -> Iterator[LocalLimit | None]:
        """What is set at the place itself, then at each wider one."""
        topics = names_of(named.topic) if named.topic else ()
        if named.subscription:
            for name in topics:
                yield limits.subscriptions.get((name, named.subscription))
        by_topic, by_namespace = limits.topics, limits.namespaces
        if self._of_subscriptions:
            by_topic, by_namespace = limits.topic_subscriptions, limits.namespace_subscriptions
        for name in topics:
            yield by_topic.get(name)
        yield by_namespace.get(named.namespace)

    def _key(self, named: Named) -> str:
        """Of the record that holds what is set at the place itself."""
        if named.subscription:
            return LIMIT_SUBSCRIPTION + subscription_name(named.topic, named.subscription)
        of_topic, of_namespace = LIMIT_TOPIC, LIMIT_NAMESPACE
        if self._of_subscriptions:
            of_topic, of_namespace = LIMIT_TOPIC_SUBSCRIPTIONS, LIMIT_NAMESPACE_SUBSCRIPTIONS
        return of_topic + named.topic if named.topic else of_namespace + named.namespace
