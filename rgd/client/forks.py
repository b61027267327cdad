"""What becomes of a client when its process forks: the child must not spend what the parent holds.

Law: in a child every client made before the fork is closed and holds nothing; its first call says so. A
server that forks its workers makes a client in each.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """A client, as a fork sees it."""

    def disown(self) -> None:
        """Forget everything that the parent holds, and refuse every call."""


_clients: WeakSet[Forked] = WeakSet()


def watch(client: Forked) -> None:
    """Disown this client in children that are forked from now on."""
    _clients.add(client)


def _in_child() -> None:
    for client in tuple(_clients):
        client.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
