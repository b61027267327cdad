"""`dispatchRate`, `subscriptionDispatchRate` and `publishRate` at namespaces, topics and subscriptions.

Law: a call changes one kind at one place and leaves the other alone, also where two daemons write at
once: the body is merged into what the table holds when it is written. An empty body is as Pulsar's:
it takes a namespace's rate away and leaves a topic's.

A limit is of each broker alone. Which of several places holds is `rgd.core.policies.precedence`'s
business; `applied` shows it.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from rgd.adapters.http.pulsar_admin.jackson import says_nothing
from rgd.adapters.http.pulsar_admin.places import Named, Naming, PlaceCalls
from rgd.adapters.http.pulsar_admin.rate_forms import (
    DISPATCH,
    NO_DISPATCH_RATE,
    PUBLISH,
    Edit,
    RateForm,
)
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply, says_true
from rgd.core.policies.model import NOT_SET, LocalLimit
from rgd.core.policies.precedence import names_of
from rgd.core.policies.records import (
    LIMIT_NAMESPACE,
    LIMIT_NAMESPACE_SUBSCRIPTIONS,
    LIMIT_SUBSCRIPTION,
    LIMIT_TOPIC,
    LIMIT_TOPIC_SUBSCRIPTIONS,
    Value,
    subscription_name,
    value_in,
)
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.daemon import Daemon


class RateCalls(PlaceCalls):
    """Sets, shows and takes away one kind of rate at one sort of place."""

    def __init__(
        self, daemon: Daemon, naming: Naming, form: RateForm[Any], *, of_subscriptions: bool = False
    ) -> None:
        super().__init__(daemon, naming)
        self._form = form
        #: Whether it is the rate of each subscription there.
        self._of_subscriptions = of_subscriptions

    async def get(self, call: Call) -> Reply:
        """The rate that is set at the very place; with `applied` the dispatch rate that is in force there."""
        named, snapshot = self._known(call)
        found = (self._shown(snapshot, key) for key in self._keys(named))
        if named.topic and self._form is DISPATCH and says_true(call, "applied"):
            return json_reply(next(filter(None, found), NO_DISPATCH_RATE))
        if (shown := next(found)) is not None:
            return json_reply(shown)
        # Pulsar's answer where it is not set differs from rate to rate.
        return NO_CONTENT if self._form is PUBLISH and named.topic else Reply()

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
        named, _ = self._known(call)
        await self._change(named, self._form.unset)
        return NO_CONTENT

    async def _change(self, named: Named, edit: Edit) -> None:
        def merge(known: Value) -> Value:
            limit = edit(known if isinstance(known, LocalLimit) else NOT_SET)
            return None if limit == NOT_SET else limit

        await self._daemon.change(next(self._keys(named)), merge)

    def _shown(self, snapshot: PolicySnapshot, key: str) -> Struct | None:
        limit = value_in(snapshot, key)
        return self._form.shown(limit) if isinstance(limit, LocalLimit) else None

    def _keys(self, named: Named) -> Iterator[str]:
        """Of the records of the place itself, then of each wider one."""
        topics = names_of(named.topic) if named.topic else ()
        of_topic, of_namespace = LIMIT_TOPIC, LIMIT_NAMESPACE
        if self._of_subscriptions:
            of_topic, of_namespace = LIMIT_TOPIC_SUBSCRIPTIONS, LIMIT_NAMESPACE_SUBSCRIPTIONS
        if named.subscription:
            for name in topics:
                yield LIMIT_SUBSCRIPTION + subscription_name(name, named.subscription)
        for name in topics:
            yield of_topic + name
        yield of_namespace + named.namespace
