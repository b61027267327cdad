"""Messages that cannot wait for the end of the round: early reports, the full state, heartbeats.

Law: a message that is due is sent before the next slice of work, so peers do not take a busy broker
for dead. Only early reports wait for the end of a round that is ending, because the hash of every
report already covers the rows that the round has picked, and these are sent only at the round's
end.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from rgd.core.broker.boundary import Part
from rgd.core.broker.effects import Effect
from rgd.core.broker.mode import Mode
from rgd.core.broker.publisher import Publisher
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.units import Nanos

#: How many heartbeats a broker sends in a round while its own messages do not come back.
HEARTBEATS_HOLDING: Final = 4

#: A broker that is busy ending a round sends a heartbeat after so many rounds without a message.
HEARTBEAT_ROUNDS_ENDING: Final = 1.5


class Run(Protocol):
    """Does a part's work, and contains what it raises (`rgd.core.broker.boundary`)."""

    def __call__(
        self, part: Part, work: Callable[[Nanos], Iterable[Effect] | None], now: Nanos
    ) -> list[Effect]: ...


class DueMessages:
    """Sends what is due between the reports of rounds."""

    def __init__(
        self,
        settings: BrokerSettings,
        publisher: Publisher,
        rounds: Rounds,
        sharing: Sharing,
        run: Run,
    ) -> None:
        self._settings = settings
        self._publisher = publisher
        self._rounds = rounds
        self._sharing = sharing
        self._run = run

    def send(self, now: Nanos, *, round_begins_to_end: bool) -> list[Effect]:
        """Send what is due now.

        Args:
            now: the current time.
            round_begins_to_end: whether a round begins to end in this wake. If its groups are few,
                its report follows in the same wake and serves as the heartbeat.
        """
        publisher, effects = self._publisher, list[Effect]()
        publisher.settle()
        self._plan_heartbeat()
        is_early = publisher.early_at is not None and now >= publisher.early_at
        if is_early and not (self._rounds.is_ending or round_begins_to_end):
            effects += self._run(Part.REPORTS, publisher.report_early, now)
        if publisher.is_state_due(now):
            effects += self._run(Part.REPORTS, publisher.report_state, now)
        is_doubted = publisher.alive_at is not None and now >= publisher.alive_at
        if is_doubted and not round_begins_to_end:
            effects += self._run(Part.REPORTS, publisher.report_nothing, now)
        return effects

    def _plan_heartbeat(self) -> None:
        """Schedule a heartbeat where the reports of rounds are too rare."""
        if self._publisher.alive_at is not None:
            return
        if self._sharing.mode is Mode.HOLDING:
            # Messages may be lost or delayed; one of several comes back during the isolation hold.
            between_ns = self._settings.round_ns // HEARTBEATS_HOLDING
        elif self._rounds.is_ending:
            # The end of a round of tens of thousands of groups may take more than a round.
            between_ns = int(self._settings.round_ns * HEARTBEAT_ROUNDS_ENDING)
        else:
            return
        self._publisher.alive_at = Nanos(self._publisher.reported_at + between_ns)
