"""The changes of policies that look at more than the one policy they change.

Law: what must be so is looked at on every try, so a change that another daemon made meanwhile is
seen. Policies of different keys are not changed at one stroke: a group that is deleted while another
daemon attaches something to it leaves an attachment that charges nothing (`PolicyBook.groups_of`).
"""

from rgd.app.policies.source import Policies
from rgd.core.errors import GroupInUse, UnknownGroup
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.records import GROUP, Value


async def delete_group(policies: Policies, name: str) -> None:
    """Delete a group that nothing is attached to.

    Raises:
        UnknownGroup: there is no such group.
        GroupInUse: something is attached to it.
        PoliciesReadOnly, ExchangeDown: as `Policies.change`.
    """

    def delete(known: Value) -> None:
        if known is None:
            raise UnknownGroup(name)
        _require_unused(policies.book(), name)

    await policies.change(GROUP + name, delete)


async def attach(policies: Policies, key: str, group: str | None) -> None:
    """Attach a tenant, namespace or topic (its key) to a group that exists, or to none.

    Raises:
        UnknownGroup: there is no such group.
        PoliciesReadOnly, ExchangeDown: as `Policies.change`.
    """

    def attached(_known: Value) -> str | None:
        if group is not None and group not in policies.book().groups:
            raise UnknownGroup(group)
        return group

    await policies.change(key, attached)


def _require_unused(book: PolicyBook, group: str) -> None:
    attached = book.index.attached_to(group)
    for what, names in (
        ("tenant", attached.tenants),
        ("namespace", attached.namespaces),
        ("topic", attached.topics),
    ):
        if names:
            raise GroupInUse(group, f"{what} {next(iter(names))!r}")
