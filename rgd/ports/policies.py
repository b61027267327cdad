"""Where what was last known of the policies table outlives the process.

Law: what is loaded is what was stored last, whole, or nothing; a store that fails leaves what was
stored before, and says why. It holds no secrets: groups, rates and names.
"""

from collections.abc import Iterable
from typing import Protocol

from rgd.errors import RgdError


class NotKept(RgdError):
    """The policies could not be stored; limits go on, and a restart knows what was stored before."""

    transient = True


class PoliciesKept(Protocol):
    """Keys and values of one table, as they were known last."""

    @property
    def trouble(self) -> str | None:
        """Why `load` found nothing that can be used, in words; None where there was nothing."""

    def load(self) -> list[tuple[str, bytes]] | None:
        """What was stored last for this table; None where there is none that can be used."""

    def store(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Replace it; a crash at any moment leaves the old one or the new one. To be called in a thread.

        Raises:
            NotKept: it cannot be written.
        """
