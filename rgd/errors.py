"""The root of every error that rgd raises, and the two facts a caller acts on.

A caller needs to know who is to blame (the subclass says) and whether the same
call may succeed later (`transient` says). Retry logic reads that attribute and
never a message. Being limited is an answer (`Decision`), not an error.

Errors of one layer are declared in that layer's `errors` module; this module
holds only the root and the one error that every layer may meet: being
configured wrongly.
"""

from dataclasses import dataclass
from typing import Any, ClassVar


class RgdError(Exception):
    """Anything rgd raises on purpose; any other exception is a bug."""

    #: Whether the same call may succeed later without anybody changing anything.
    transient: ClassVar[bool] = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with what it is made of, because its constructor takes other arguments than its message."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a file, a setting or an option."""

    #: Where: a file name, `environment` or `command line`.
    source: str
    #: The dotted key, or "" when the source as a whole is at fault.
    key: str
    #: What was expected, and what to do.
    expected: str
    #: The line of a file, from 1, where it is known.
    line: int | None = None
    #: How many faults it stands for.
    count: int = 1

    def __str__(self) -> str:
        source = self.source if self.line is None else f"{self.source}:{self.line}"
        place = f"{source}: {self.key}" if self.key else source
        return f"{place}: {self.expected}"


class ConfigError(RgdError):
    """What a person configured cannot be used; carries every fault at once."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        super().__init__("\n".join(map(str, faults)))


class InternalError(RgdError):
    """A bug was met while somebody was answered; it is logged and counted already (HTTP 500)."""

    def __init__(self) -> None:
        super().__init__("internal error: the daemon's log has it")


class Unavailable(RgdError):
    """Something outside (a port, a Pulsar, Java) is missing; the message has the remedy."""
