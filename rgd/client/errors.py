"""What the client raises. Being limited, and a daemon that is away, are answers, not errors."""

from rgd.errors import RgdError


class QuestionRefused(RgdError):
    """The daemon refuses to decide: the question or the token is at fault.

    Args:
        status: as HTTP has it: 400, 401 (also for a token without the scope, or a name of the daemon that it
            refuses), 403 (no limit applies to the name), 404 or 413.
        reason: the daemon's own words.
    """

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"{status}: {reason}")


class ClientClosed(RgdError):
    """The client is closed, was not opened, or was opened before this process was forked."""


class BadSetting(RgdError):
    """A setting of the client, or a file that it names, cannot be used."""
