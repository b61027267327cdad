"""`GET /v1/explain`: every limit that applies to a name, and what each of them refused lately.

Law: strict, as all of `/v1`: a parameter that is not known, or stands there twice, is 400; and
asking leaves no trace in the daemon.

The view is made by the daemon (`rgd.ports.daemon.ExplainView`); here are only the names.
"""

from dataclasses import replace

from msgspec import UNSET, Struct, UnsetType, to_builtins

from rgd.adapters.http.acquire import full_names
from rgd.adapters.http.bodies import AKind, Name
from rgd.adapters.http.endpoint import read
from rgd.adapters.http.reply import Call, Reply, json_reply
from rgd.adapters.http.strict import QueryReader
from rgd.core.buckets.decision import Request
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


_query = QueryReader(ExplainQuery)


class Explain:
    """Asks the daemon why."""

    def __init__(self, daemon: Daemon) -> None:
        self._explain = daemon.explain

    @read("/v1/explain", ExplainView, query=(ExplainQuery,))
    async def answer(self, call: Call) -> Reply:
        """Why is a name limited? Every limit that applies, in the order of decision."""
        asked = _query.read(call.query)
        # Uncached: what the gate remembers of names is no use here.
        namespace, topic, subscription = full_names.__wrapped__(
            asked.tenant, asked.namespace, asked.topic, asked.subscription
        )
        view = self._explain(
            Request(asked.kind, namespace=namespace, topic=topic, subscription=subscription)
        )
        return json_reply(replace(view, words=words_of(to_builtins(view))))
