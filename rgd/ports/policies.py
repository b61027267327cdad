"""Storage for the last known content of the policies table, across restarts.

Law: a load returns the last stored content completely, or nothing. A failed store leaves the previous
content, and reports the reason. It has no secrets, only groups, rates and names.
"""

from collections.abc import Iterable
from typing import Protocol

from rgd.errors import RgdError


class NotKept(RgdError):
    """The policies could not be stored. Limits stay in force, and a restart uses the previous content."""

    transient = True


class PoliciesKept(Protocol):
    """The last known keys and values of one table."""

    @property
    def trouble(self) -> str | None:
        """Why `load` found no usable content, as text; None where nothing was stored."""

    def load(self) -> list[tuple[str, bytes]] | None:
        """The last stored content for this table; None if there is none that is usable."""

    def store(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Replace it; a crash at any moment leaves the old one or the new one. To be called in a thread.

        Raises:
            NotKept: it cannot be written.
        """
