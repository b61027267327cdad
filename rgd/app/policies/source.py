"""What the daemon asks of every source of policies.

Law: a source that has trouble keeps the last good policies in force and says so; it never gives
the daemon half of a change.
The sources are in modules of their own, named as `policies.source` names them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rgd.core.policies.book import PolicyBook
from rgd.core.policies.records import Change

#: Hears of each new book, and of its hash (0: no policies are known).
OnBook = Callable[[PolicyBook, int], None]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a source counts, for metrics."""

    #: Whether what is in force may not be the newest.
    is_old: bool = False
    #: Records of the table that could not be used.
    refused: int = 0
    #: Records that were written to a table that had lost them.
    written_back: int = 0
    #: How often the connection to the table was lost.
    lost: int = 0


class Policies(Protocol):
    """A source of policies."""

    @property
    def is_settled(self) -> bool:
        """False until it is known what to hold to at the start."""

    @property
    def is_known(self) -> bool:
        """False while nobody has told any policies: not this run, not an earlier one, not a groups file."""

    @property
    def trouble(self) -> str | None:
        """Why what is in force may not be the newest, in words; None: as far as is known, it is."""

    def figures(self) -> Figures:
        """What was counted so far."""

    def book(self) -> PolicyBook:
        """What is in force."""

    async def follow(self, on_book: OnBook) -> None:
        """Tell of every change until cancelled."""

    async def change(self, key: str, change: Change) -> None:
        """Change one policy; in force here when it returns (`rgd.ports.daemon.Daemon.change`).

        Raises:
            PoliciesReadOnly: something else owns the policies (a file, a stock Pulsar).
            ExchangeDown: the table cannot be written now.
        """

    async def close(self) -> None:
        """Let go of what is open."""
