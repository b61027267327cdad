"""Errors of the core: a bug in rgd, or an invalid or unknown name.

`InvariantBroken` is a programming error: the daemon logs its context and
crashes. The others are the caller's fault, and one table in `rgd.adapters.http`
translates them to HTTP statuses.
"""

from rgd.errors import RgdError


class CoreError(RgdError):
    """The base of all errors that the core raises."""


class InvariantBroken(CoreError):
    """The core's own state is wrong; the message describes how."""


class InvalidName(CoreError):
    """A tenant, namespace, topic or group name is malformed (HTTP 400)."""


class InvalidBacklog(CoreError):
    """The report of a topic's backlog is malformed or beyond a limit (HTTP 400)."""


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
    """The policies are read from a file and cannot be changed here; change the file (HTTP 409)."""
