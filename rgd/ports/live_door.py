"""The live view as its HTTP door sees it.

Law: a call is one slice of bounded work; the snapshot is computed once a round and shared by all who look.
"""

from typing import Protocol

from rgd.views.live_model import EventView, LiveGroupView, LiveView, PressureView


class LiveDoor(Protocol):
    """The live view of one daemon."""

    def view(self) -> LiveView:
        """The newest snapshot: the same value until there is a newer one."""

    async def next(self, after: int) -> LiveView:
        """The newest snapshot, once its number is greater than this."""

    def group(self, name: str) -> LiveGroupView:
        """One group with all its brokers, and its last ten minutes.

        Raises:
            UnknownGroup: there is no such group.
        """

    def rows(self, name: str) -> list[PressureView]:
        """The rows of a group as a snapshot has them; none where there is no such group."""

    def events(self) -> tuple[EventView, ...]:
        """The last events of the daemon's log, oldest first."""
