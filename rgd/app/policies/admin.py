"""Changes of one policy that depend on other policies.

Law: the conditions are checked on every attempt, so a concurrent change of another daemon is
seen. Policies of different keys are not changed atomically. If a group is deleted while another
daemon attaches a name to it, the attachment remains and charges nothing (`PolicySnapshot.groups_of`).
"""

from rgd.app.policies.source import Policies
from rgd.core.errors import GroupInUse, UnknownGroup
from rgd.core.policies.records import GROUP, Value


async def delete_group(policies: Policies, name: str) -> None:
    """Delete a group without attachments.

    Raises:
        UnknownGroup: there is no such group.
        GroupInUse: something is attached to it.
        PoliciesReadOnly, ExchangeDown: as `Policies.change`.
    """

    def delete(known: Value) -> None:
        if known is None:
            raise UnknownGroup(name)
        attached = policies.snapshot().attached_to(name)
        for what, names in zip(("tenant", "namespace", "topic"), attached, strict=True):
            if names:
                raise GroupInUse(name, f"{what} {names[0]!r}")

    await policies.change(GROUP + name, delete)


async def attach(policies: Policies, key: str, group: str | None) -> None:
    """Attach a tenant, namespace or topic (its key) to a group that exists, or to none.

    Raises:
        UnknownGroup: there is no such group.
        PoliciesReadOnly, ExchangeDown: as `Policies.change`.
    """

    def attached(_known: Value) -> str | None:
        if group is not None and group not in policies.snapshot().groups:
            raise UnknownGroup(group)
        return group

    await policies.change(key, attached)
