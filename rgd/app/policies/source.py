"""The interface of every source of policies.

Law: a source with a problem keeps the last valid policies in force and reports it; it never gives
the daemon half of a change.
The sources are in modules of their own, named like the values of `policies.source`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rgd.core.errors import PoliciesReadOnly
from rgd.core.policies.records import Change
from rgd.core.policies.snapshot import PolicySnapshot

#: Receives each new snapshot and its hash (0: no policies are known).
OnSnapshot = Callable[[PolicySnapshot, int], None]


@dataclass(frozen=True, slots=True)
class Figures:
    """The counters of a source, for metrics."""

    #: Whether the policies in force may be old.
    is_old: bool = False
    #: Records of the table that could not be used.
    refused: int = 0
    #: Records that were written to a table that had lost them.
    written_back: int = 0
    #: How often the connection to the table was lost.
    lost: int = 0
    #: Records that the table is known to lack now, and policies that another record hides from its readers.
    lacking: int = 0
    misplaced: int = 0


class ReadOnlyPolicies:
    """What sources have in common that somebody else owns."""

    #: Why the policies in force may be old; None if they are not.
    trouble: str | None = None
    #: Who owns them, and how they are changed there.
    _owner: str

    def figures(self) -> Figures:
        """Whether the policies in force may be old."""
        return Figures(is_old=self.trouble is not None)

    async def change(self, key: str, change: Change) -> None:
        """Refuse, because they are another's."""
        del change
        raise PoliciesReadOnly(f"{key}: policies come from {self._owner}")


class Policies(Protocol):
    """A source of policies."""

    @property
    def is_settled(self) -> bool:
        """False until the source knows what is in force at the start."""

    @property
    def is_known(self) -> bool:
        """False while no policies are known: from this run, an earlier one, or a groups file."""

    @property
    def trouble(self) -> str | None:
        """Why the policies in force may be old, as text; None if they are not."""

    def figures(self) -> Figures:
        """The counters so far."""

    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""

    async def follow(self, on_snapshot: OnSnapshot) -> None:
        """Report every change until cancelled."""

    async def change(self, key: str, change: Change) -> None:
        """Change one policy; in force here when it returns (`rgd.ports.daemon.Daemon.change`).

        Raises:
            PoliciesReadOnly: another source owns the policies (a file, a stock Pulsar).
            ExchangeDown: the table cannot be written now.
        """

    async def close(self) -> None:
        """Close open resources."""
