"""`backlogQuotaMap` and `backlogQuota` of namespaces and topics: kept and shown.

Law: both limits of a quota are kept and shown as they were put, whatever its type measures; a call
changes the quota of one type and leaves the other alone. `applied` shows what is in force: of each
type the topic's quota, else its namespace's, else the default (`rgd.core.policies.precedence`).
"""

from dataclasses import replace
from typing import Final

from msgspec import Struct

from rgd.adapters.http.endpoint import change, read
from rgd.adapters.http.errors import BadBody, CallError
from rgd.adapters.http.pulsar_admin.bodies import (
    BacklogQuotaAnswer,
    BacklogQuotaBody,
    BacklogQuotaMap,
)
from rgd.adapters.http.pulsar_admin.jackson import INT32_MAX, INT64_MAX, integer, says_nothing
from rgd.adapters.http.pulsar_admin.places import AppliedQuery, Named, PlaceCalls
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply, says_true
from rgd.adapters.http.strict import BodyDecoder
from rgd.core.policies.model import (
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    Backlogs,
    BacklogType,
)
from rgd.core.policies.precedence import backlog_quota
from rgd.core.policies.records import BACKLOG_NAMESPACE, BACKLOG_TOPIC, Value, value_in

#: The query that says which type is meant.
TYPE: Final = "backlogQuotaType"

_NOT_SET: Final = BacklogQuotas()

_body = BodyDecoder(BacklogQuotaBody, names_once=False)


class TypeQuery(Struct, rename="camel"):
    """Which quota is meant."""

    backlog_quota_type: BacklogType = BacklogType.SIZE


class BacklogCalls(PlaceCalls):
    """Sets, shows and takes away backlog quotas at one sort of place."""

    @read("/backlogQuotaMap", BacklogQuotaMap, 404, 412, query=(AppliedQuery,))
    async def get(self, call: Call) -> Reply:
        """The backlog quotas of {place}, by what they measure."""
        named, snapshot = self._known(call)
        if says_true(call, "applied"):
            return json_reply(self._applied(snapshot.backlogs, named))
        return json_reply(told(value_in(snapshot, _key(named))))

    @change(
        "POST",
        "/backlogQuota",
        404,
        409,
        412,
        body=BacklogQuotaBody,
        body_required=False,
        query=(TypeQuery,),
    )
    async def put(self, call: Call) -> Reply:
        """Set one backlog quota of {place}, whole."""
        named, which = self._naming(call), _type_of(call)
        if named.topic and says_nothing(call.body):
            # As Pulsar, which takes a namespace's the same for a fault (500 there).
            quota = None
        else:
            quota = _quota_of(_body.decode(call.body), named.namespace)
        await self._set(named, which, quota)
        return NO_CONTENT

    @change("DELETE", "/backlogQuota", 404, 409, 412, query=(TypeQuery,))
    async def delete(self, call: Call) -> Reply:
        """Take away one backlog quota of {place}."""
        (named, _), which = self._known(call), _type_of(call)
        await self._set(named, which, None)
        return NO_CONTENT

    def _applied(self, backlogs: Backlogs, named: Named) -> BacklogQuotaMap:
        shown: dict[str, BacklogQuotaAnswer] = {}
        for which in BacklogType:
            said = backlog_quota(backlogs, named.namespace, named.topic or None, which)
            shown[which] = _answer(self._daemon.backlogs.default if said is None else said.value)
        return BacklogQuotaMap(**shown)

    async def _set(self, named: Named, which: BacklogType, quota: BacklogQuota | None) -> None:
        def merge(known: Value) -> Value:
            quotas = known if isinstance(known, BacklogQuotas) else _NOT_SET
            if which is BacklogType.SIZE:
                quotas = replace(quotas, size=quota)
            else:
                quotas = replace(quotas, age=quota)
            return None if quotas == _NOT_SET else quotas

        await self._daemon.change(_key(named), merge)


def _key(named: Named) -> str:
    """Of the record of the very place."""
    return BACKLOG_TOPIC + named.topic if named.topic else BACKLOG_NAMESPACE + named.namespace


def told(quotas: Value) -> BacklogQuotaMap:
    """The quotas in Pulsar's words."""
    shown: dict[str, BacklogQuotaAnswer] = {}
    for which in BacklogType:
        if isinstance(quotas, BacklogQuotas) and (quota := quotas.of(which)) is not None:
            shown[which] = _answer(quota)
    return BacklogQuotaMap(**shown)


def _answer(quota: BacklogQuota) -> BacklogQuotaAnswer:
    return BacklogQuotaAnswer(quota.size_bytes, quota.size_bytes, quota.age_s, quota.action)


def _type_of(call: Call) -> BacklogType:
    said = call.query.get(TYPE) or BacklogType.SIZE
    try:
        return BacklogType(said)
    except ValueError:
        known = " or ".join(BacklogType)
        raise CallError(404, f"{TYPE}: expected {known}, got {said[:80]!r}") from None


def _quota_of(body: BacklogQuotaBody, namespace: str) -> BacklogQuota:
    size_said = body.limit if body.limit_size is None else body.limit_size
    size = integer(size_said, "limitSize", INT64_MAX)
    age_s = integer(body.limit_time, "limitTime", INT32_MAX)
    if body.policy not in set(BacklogAction):
        raise BadBody(
            f"Set namespace[{namespace}] backlog quota failed because the data validation failed. "
            f"the attribute policy cannot be null: expected one of {', '.join(BacklogAction)}"
        )
    return BacklogQuota(size or 0, age_s or 0, BacklogAction(body.policy))
