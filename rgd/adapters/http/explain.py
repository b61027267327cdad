"""`GET /v1/explain`: every limit that applies to a name, and what each of them refused lately.

Law: strict, as all of `/v1`: a parameter that is not known, or stands there twice, is 400; and
asking leaves no trace in the daemon.

The view is made by the daemon (`rgd.ports.daemon.ExplainView`); here are only the names.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msgspec import UNSET, Struct, UnsetType, to_builtins

from rgd.adapters.http.answers import Reason
from rgd.adapters.http.bodies import AKind, Name
from rgd.adapters.http.endpoint import Endpoint, Query, ResponseSpec, read
from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.reply import Call, Reply, encode, json_reply
from rgd.adapters.http.strict import BodyDecoder
from rgd.core.buckets.decision import Request
from rgd.core.policies.names import check_subscription, namespace_of, topic_of
from rgd.core.units import Kind
from rgd.ports.daemon import Daemon
from rgd.views.model import ExplainView
from rgd.views.why_words import words_of


class ExplainQuery(Struct, forbid_unknown_fields=True):
    """Whose traffic: names as in `POST /v1/acquire`."""

    tenant: Name
    namespace: Name
    topic: Name | UnsetType = UNSET
    subscription: Name | UnsetType = UNSET
    kind: AKind = Kind.PUBLISH


_query = BodyDecoder(ExplainQuery)

_STRING: Final = {"type": "string"}
_QUERY: Final = (
    Query("tenant", "Whose traffic.", _STRING, required=True),
    Query("namespace", "Of the tenant.", _STRING, required=True),
    Query("topic", "`eu`, or `persistent://tenant/namespace/eu`.", _STRING),
    Query("subscription", "Of the topic.", _STRING),
    Query("kind", "Which way.", {"enum": [*Kind], "default": Kind.PUBLISH}),
)


class Explain:
    """Asks the daemon why."""

    def __init__(self, daemon: Daemon) -> None:
        self._explain = daemon.explain

    async def answer(self, call: Call) -> Reply:
        """Explain one name in one kind."""
        view = self._explain(_name_of(call.query))
        return json_reply(replace(view, words=words_of(to_builtins(view))))


def explain_endpoint(explain: Explain) -> Endpoint:
    """The one call."""
    about = "Why is a name limited? Every limit that applies, in the order of decision."
    answers = {
        200: ResponseSpec("The limits, and what each refused in the last minute.", ExplainView),
        400: ResponseSpec("A parameter is missing, malformed or unknown; it is named.", Reason),
    }
    return read("/v1/explain", explain.answer, about, answers, _QUERY)


def _name_of(query: Mapping[str, str]) -> Request:
    """The name in the core's words.

    Raises:
        BadBody, InvalidName: a parameter is missing, unknown, malformed, or contradicts another.
    """
    names = [name for name, _ in query.items()]
    given = dict(query)
    if len(given) < len(names):
        twice = next(name for name in given if names.count(name) > 1)
        raise BadBody(f"{twice}: expected once")
    for needed in ("tenant", "namespace"):
        if needed not in given:
            raise BadBody(f"{needed}: expected a tenant and a namespace, got no {needed}")
    asked = _query.decode(encode(given))
    namespace = namespace_of(asked.tenant, asked.namespace)
    if asked.topic is UNSET:
        if asked.subscription is not UNSET:
            raise BadBody("subscription: expected a topic beside it, got nothing")
        return Request(asked.kind, namespace=namespace)
    subscription = asked.subscription
    return Request(
        asked.kind,
        namespace=namespace,
        topic=topic_of(namespace, asked.topic),
        subscription=None if subscription is UNSET else check_subscription(subscription),
    )
