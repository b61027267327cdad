"""Faults in the core itself: at random moments some method of a member raises what nobody foresaw.

About every `mean_s` one method of one member is armed; its next call raises, before it has done anything
or after it has done all of it, as the dice has it, and however long that takes. So each place is met as
often as any other, and the rate of faults stays below what would end a
daemon.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from rgd.core.buckets.decision import Answer, Decision, Request
from rgd.core.units import NS_PER_S, Nanos
from sim.member import Member
from sim.world import World

#: Handlers and inner rooms: the way to an object from the broker, and a method of it. Nothing that is called to derive
#: the state again after a fault: what raises there ends a daemon.
PLACES = (
    ("", "_notice_gap"),
    ("", "_on_message_received"),
    ("rounds", "collect_unreported"),
    ("", "_on_woken"),
    ("publisher", "report"),
    ("publisher", "report_state"),
    ("publisher", "finish_round"),
    ("slots", "work"),
    ("slots", "end_round"),
    ("own_name", "check"),
    ("own_name", "read_back"),
    ("rounds", "begin"),
    ("rounds", "step"),
    ("rounds", "_close"),
    ("rounds", "tick"),
    ("rounds", "_refused_by"),
    ("rounds", "_advertise"),
    ("rounds", "_show"),
    ("rounds", "finish"),
    ("rounds", "early"),
    ("rounds.suppression", "advertised_at"),
    ("rounds", "_rows"),
    ("rounds.demand", "tick"),
    ("rounds.demand", "measure"),
    ("rounds.demand", "close"),
    ("rounds.demand", "advertise"),
    ("rounds.suppression", "pick"),
    ("rounds.suppression", "_note"),
    ("rounds.suppression", "next_round"),
    ("membership", "receive"),
    ("membership", "read_back"),
    ("membership", "check"),
    ("membership", "_take_report"),
    ("membership", "_repair"),
    ("exchange_state", "check"),
    ("exchange_state", "check_answers"),
    ("exchange_state", "take"),
    ("peers", "receive"),
    ("peers", "advance"),
    ("usage", "apply"),
    ("usage", "_merge"),
    ("usage", "_rewrite"),
    ("link", "sent"),
    ("link", "received"),
    ("sharing", "work"),
    ("sharing", "raise_due"),
    ("sharing", "refresh"),
    ("sharing", "refresh_all"),
    ("sharing", "set_policies"),
    ("sharing", "_targets"),
    ("sharing", "share_out"),
    ("sharing._damping", "aim"),
    ("sharing._broker_index", "share_out"),
    ("limiter", "set_share"),
    ("limiter", "set_policies"),
    ("limiter", "end_round"),
    ("limiter", "work"),
    ("limiter", "chain_of"),
    ("limiter", "_refresh"),
)


class InjectedFault(Exception):
    """Nobody foresaw it."""


class Injector:
    """Arms one place after another, until it is told to stop."""

    def __init__(
        self, world: World, seed: int, mean_s: float, places: Sequence[tuple[str, str]] = PLACES
    ) -> None:
        self._places = places
        self.raised: Counter[str] = Counter()
        self._world = world
        self._dice = Random(seed)
        self._mean_s = mean_s
        #: (member, place) whose next call raises.
        self._armed: set[tuple[str, str]] = set()
        self._is_on = False

    def reach(self, member: Member) -> None:
        """Let every place of a member raise when it is armed."""
        for path, method in PLACES:
            owner: Any = member.broker
            for name in filter(None, path.split(".")):
                owner = getattr(owner, name)
            setattr(
                owner, method, self._wrapped(getattr(owner, method), f"{path}.{method}", member)
            )
        # The table of handlers was made before.
        member.broker._handlers = member.broker._handlers_by_event()  # noqa: SLF001 -- nobody else's
        limiter = member.broker.limiter
        # mypy takes a method for one that stays.
        setattr(limiter, "acquire", self._answered(limiter.acquire))  # noqa: B010

    def start(self) -> None:
        """Begin to arm."""
        self._is_on = True
        self._arm_soon()

    def stop(self) -> None:
        """Let nothing raise any more."""
        self._is_on = False
        self._armed.clear()

    def _arm_soon(self) -> None:
        gap_ns = round(self._dice.expovariate(1 / self._mean_s) * NS_PER_S)
        self._world.at(self._world.now + gap_ns, self._arm)

    def _arm(self) -> None:
        if self._is_on:
            path, method = self._dice.choice(self._places)
            member = self._dice.choice(sorted(self._world.members))
            self._armed.add((member, f"{path}.{method}"))
            self._arm_soon()

    def _answered(self, acquire: Callable[[Request, Nanos], Answer]) -> Callable[..., Answer]:
        """A caller whose request raised gets no answer, as over HTTP, and has to do without."""

        def answered(request: Request, now: Nanos) -> Answer:
            try:
                return acquire(request, now)
            except InjectedFault:
                return Decision(granted=False, messages=0, bytes=0, retry_after_ms=1)

        return answered

    def _wrapped(self, call: Callable[..., Any], place: str, member: Member) -> Callable[..., Any]:
        def raising(*args: Any, **kwargs: Any) -> Any:
            if (member.name, place) not in self._armed:
                return call(*args, **kwargs)
            self._armed.remove((member.name, place))
            self.raised[place] += 1
            if self._dice.random() < 0.5:
                call(*args, **kwargs)
            raise InjectedFault(place)

        return raising
