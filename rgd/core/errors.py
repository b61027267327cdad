"""Errors of the core: a bug of ours, or a name that means nothing.

`InvariantBroken` is a programmer's error: the daemon logs the story and
crashes. The others are the caller's fault and are translated to an HTTP status
by one table in `rgd.adapters.http`.
"""

from rgd.errors import RgdError


class CoreError(RgdError):
    """Anything the core raises."""


class InvariantBroken(CoreError):
    """The core's own state is wrong; carries the story that led there."""


class InvalidName(CoreError):
    """A tenant, namespace, topic or group name is malformed (HTTP 400)."""


class UnknownGroup(CoreError):
    """A request names a group that no policy defines (HTTP 404)."""

    def __init__(self, group: str) -> None:
        self.group = group
        super().__init__(f"group {group!r} does not exist; GET /v1/groups lists the groups")


class GroupInUse(CoreError):
    """A group cannot be deleted while something is attached to it (HTTP 409 or 412)."""

    def __init__(self, group: str, attached: str) -> None:
        self.group = group
        super().__init__(f"group {group!r} is in use by {attached}; detach it first")


class PoliciesReadOnly(CoreError):
    """The policies come from a file that is the truth; change the file (HTTP 409)."""
