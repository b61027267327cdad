"""Lists of clusters, tenants and namespaces, and a namespace's policies, as Pulsar shows them.

They are what the policies here name, and nothing else: rgd knows no bundles, permissions or topics.
"""

from typing import Final

from msgspec import UNSET

from rgd.adapters.http.endpoint import read
from rgd.adapters.http.errors import CallError
from rgd.adapters.http.paging import WholePage, a_page, names_reply
from rgd.adapters.http.pulsar_admin.backlog_quotas import told
from rgd.adapters.http.pulsar_admin.bodies import NamespacePolicies
from rgd.adapters.http.pulsar_admin.dynamic_config import SETTINGS, values_of
from rgd.adapters.http.pulsar_admin.places import (
    check_known,
    is_tenant,
    namespace_named,
    tenant_named,
)
from rgd.adapters.http.pulsar_admin.rate_forms import DISPATCH, PUBLISH
from rgd.adapters.http.reply import Call, Reply, json_reply
from rgd.core.policies.model import NOT_SET
from rgd.core.policies.names import tenant_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.daemon import Daemon

NAMESPACE: Final = "/admin/v2/namespaces/{tenant}/{namespace}"


class NamespaceCalls:
    """What there is."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @read("/admin/v2/clusters", list[str])
    async def clusters(self, _call: Call) -> Reply:
        """The cluster of this daemon."""
        return json_reply([self._daemon.cluster])

    @read("/admin/v2/brokers/configuration/runtime", dict[str, str])
    async def runtime_configuration(self, _call: Call) -> Reply:
        """The cluster's name and the broker's dispatch limit, of all of Pulsar's settings.

        `pulsar-admin clusters list` asks for it to mark the current cluster.
        """
        limits = dict.fromkeys(SETTINGS, "0") | values_of(self._daemon.snapshot().limits.broker)
        return json_reply({"clusterName": self._daemon.cluster} | limits)

    @read("/admin/v2/tenants", a_page(list[str]), query=(WholePage,))
    async def tenants(self, call: Call) -> Reply:
        """Every tenant of which anything is named, or a page of them."""
        snapshot = self._daemon.snapshot()
        return names_reply(call, {*snapshot.attach.tenants, *map(tenant_of, snapshot.existing)})

    @read("/admin/v2/namespaces/{tenant}", a_page(list[str]), 404, 412, query=(WholePage,))
    async def list(self, call: Call) -> Reply:
        """A tenant's namespaces, full names, or a page of them."""
        tenant, snapshot = tenant_named(call).tenant, self._daemon.snapshot()
        if not is_tenant(snapshot, tenant):
            raise CallError(404, "Tenant not found")
        return names_reply(call, (one for one in snapshot.existing if one.startswith(f"{tenant}/")))

    @read(NAMESPACE, NamespacePolicies, 404, 412)
    async def policies(self, call: Call) -> Reply:
        """What is set for a namespace."""
        named, snapshot = namespace_named(call), self._daemon.snapshot()
        check_known(snapshot, named)
        return json_reply(policies_of(snapshot, named.namespace, self._daemon.cluster))


def policies_of(snapshot: PolicySnapshot, namespace: str, cluster: str) -> NamespacePolicies:
    """What is set for a namespace, in Pulsar's words."""
    limit = snapshot.limits.namespaces.get(namespace, NOT_SET)
    of_subscriptions = snapshot.limits.namespace_subscriptions.get(namespace, NOT_SET)
    dispatch, publish = DISPATCH.shown(limit), PUBLISH.shown(limit)
    subscription = DISPATCH.shown(of_subscriptions)
    topic_dispatch = {cluster: dispatch} if dispatch else {}
    return NamespacePolicies(
        replication_clusters=[cluster],
        backlog_quota_map=told(snapshot.backlogs.namespaces.get(namespace)),
        cluster_dispatch_rate=topic_dispatch,
        topic_dispatch_rate=topic_dispatch,
        subscription_dispatch_rate={cluster: subscription} if subscription else {},
        publish_max_message_rate={cluster: publish} if publish else {},
        resource_group_name=snapshot.attach.namespaces.get(namespace, UNSET),
    )
