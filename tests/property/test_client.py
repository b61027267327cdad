"""The client's core under every order of events: never more than granted, every question answered once, in time.

Calls are answered, lost, late and out of order, by tests/unit/client/model_daemon.py. Not covered: sockets
and threads (tests/integration/client).
"""

import random
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from rgd.client.answers import Answer, Name, Question, Source
from rgd.client.core import Call, ClientCore
from rgd.client.settings import ClientSettings
from rgd.client.tickets import Ticket
from rgd.client.transport import NOTHING
from tests.unit.client.model_daemon import ModelDaemon

MS = 1_000_000
NAMES = (Name("acme", "orders"), Name(group="gold"))
TIMEOUT_MS = 250


@dataclass(frozen=True)
class Ask:
    name: int
    messages: int
    bytes: int
    attempt: int
    leased: bool


@dataclass(frozen=True)
class Reply:
    """One of the calls in progress comes to its end; `how` says what happens to it."""

    which: int
    how: str
    messages: int
    bytes: int


AMOUNT = st.integers(0, 12)
EVENTS = st.lists(
    st.builds(
        Ask,
        name=st.integers(0, 1),
        messages=AMOUNT,
        bytes=AMOUNT,
        attempt=st.sampled_from([1, 1, 2]),
        leased=st.sampled_from([True, True, False]),
    )
    | st.builds(
        Reply,
        which=st.integers(0, 7),
        how=st.sampled_from(["granted", "granted", "granted", "cut", "limited", "refused", "lost", "late", "404", "503", "500", "junk"]),
        messages=st.integers(0, 100),
        bytes=st.integers(0, 100),
    )
    | st.sampled_from(["abandon", "use nothing", "calm", "calm"])
    | st.sampled_from([1, 20, 100, 260, 600]).map(lambda ms: ms * MS),
    min_size=30,
    max_size=60,
)  # fmt: skip


class World:
    """A core, a model of the daemon, and what callers were told."""

    def __init__(self, when_away: str) -> None:
        settings = ClientSettings(
            when_away=when_away, timeout_s=TIMEOUT_MS / 1000, calls_max=2, waiting_max=8
        )
        self.core = ClientCore(settings, random.Random(1))
        self.daemon = ModelDaemon()
        self.now = 10**9
        self.calls: list[Call] = []
        self.told: list[tuple[Question, Answer, int, int]] = []
        self.open: dict[int, tuple[Question, int]] = {}
        self.tickets: list[Ticket] = []

    def ask(self, ask: Ask) -> None:
        question = Question(NAMES[ask.name], ask.messages, ask.bytes, attempt=ask.attempt)
        asked_at = self.now
        hold = self.core.leases.hold_of(question.name, self.now) if ask.leased else None
        if hold is not None and ask.attempt == 1 and hold.take(ask.messages, ask.bytes, self.now):
            told = Answer(granted=True, messages=ask.messages, bytes=ask.bytes, source=Source.LEASE)
            self.tell(question, told, asked_at)
            return
        key = len(self.tickets)

        def on_answer(answer: Answer) -> None:
            assert key in self.open, "answered twice"
            del self.open[key]
            self.tell(question, answer, asked_at)

        asked = self.core.ask(question, self.now, on_answer, hold=hold)
        if isinstance(asked, Ticket):
            self.open[key] = question, asked_at
            self.tickets.append(asked)
        else:
            self.tell(question, asked, asked_at)

    def tell(self, question: Question, answer: Answer, asked_at: int) -> None:
        assert self.now <= asked_at + TIMEOUT_MS * MS, "answered late"
        if answer.source is Source.LEASE and answer.granted and answer.messages + answer.bytes:
            assert any(self.now < expiry for expiry in self.daemon.expiry.values()), "expired"
        self.told.append((question, answer, asked_at, self.now))

    def calm(self) -> None:
        """Everything is granted, and a refresh time comes."""
        while self.calls:
            self.reply(Reply(0, "granted", 10, 10))
            self.pump()
        self.move(250 * MS)

    def abandon(self) -> None:
        if self.open:
            key = max(self.open)
            self.core.abandon(self.tickets[key])
            del self.open[key]

    def use_nothing(self) -> None:
        """The last grant of a lease was for nothing."""
        for at, (question, answer, _, _) in reversed(list(enumerate(self.told))):
            if answer.granted and answer.source is Source.LEASE:
                hold = self.core.leases.hold_of(question.name, self.now)
                assert hold is not None
                hold.put_back(answer.messages, answer.bytes, self.now)
                del self.told[at]
                return

    def pump(self) -> None:
        self.core.expire(self.now)
        self.calls += self.core.calls(self.now)

    def move(self, by_ns: int) -> None:
        """Let time pass, waking the core whenever it asks for it."""
        until = self.now + by_ns
        for _ in range(1000):
            due = self.core.wake_at()
            if due is None or due > until:
                break
            self.now = max(self.now, due)
            self.pump()
        self.now = until
        self.pump()

    def reply(self, reply: Reply) -> None:
        if not self.calls:
            return
        call = self.calls.pop(reply.which % len(self.calls))
        if reply.how in {"500", "503", "junk"}:
            status, body = (200, b"{") if reply.how == "junk" else (int(reply.how), b"")
            self.core.answered(call.id, status, body, self.now)
            return
        if reply.how == "404" and "/leases" in call.path:
            self.core.answered(call.id, 404, b'{"reason":"gone"}', self.now)
            return
        status, body = self.decide(call, reply)
        if reply.how == "lost":
            self.core.answered(call.id, *NOTHING, self.now)
            return
        if reply.how == "late":
            self.move(100 * MS)
        self.core.answered(call.id, status, body, self.now)

    def decide(self, call: Call, reply: Reply) -> tuple[int, bytes]:
        if call.path == "/v1/acquire":
            return self.daemon.acquire(call, granted=reply.how != "refused")
        if call.path == "/v1/settle":
            return self.daemon.settle(call)
        if reply.how == "refused" and call.path == "/v1/leases":
            return 429, b'{"granted":false,"limited_by":"resource_group","retry_after_ms":30}'
        amounts = (0, 0) if reply.how == "refused" else (reply.messages, reply.bytes)
        cut = reply.how in {"cut", "refused"}
        limited = reply.how == "limited"
        return self.daemon.lease(call, *amounts, 500, self.now, cut=cut, limited=limited)

    def granted(self, source: Source) -> list[int]:
        answers = [answer for _, answer, _, _ in self.told if answer.granted]
        mine = [answer for answer in answers if answer.source is source]
        return [sum(a.messages for a in mine), sum(a.bytes for a in mine)]

    def check(self) -> None:
        leased, daemon = self.granted(Source.LEASE), self.daemon
        for at in (0, 1):
            assert leased[at] + daemon.returned[at] <= daemon.leased[at]
            assert self.granted(Source.DAEMON)[at] <= daemon.acquired[at]
            assert daemon.settled[at] <= daemon.acquired[at]
        for hold in (self.core.leases.hold_of(name, self.now) for name in NAMES):
            assert hold is not None
            assert min(hold.messages, hold.bytes, *hold.left()) >= 0


@given(events=EVENTS, when_away=st.sampled_from(["open", "closed"]))
def test_never_more_than_granted_and_every_question_answered_in_time(
    events: list[object], when_away: str
) -> None:
    world = World(when_away)
    for event in events:
        if isinstance(event, Ask):
            world.ask(event)
        elif isinstance(event, Reply):
            world.reply(event)
        elif isinstance(event, int):
            world.move(event)
        elif event == "abandon":
            world.abandon()
        elif event == "calm":
            world.calm()
        else:
            world.use_nothing()
        world.pump()
        world.check()
    world.core.answer_all(world.now)
    assert world.open == {}
    while world.calls:
        world.reply(Reply(0, "granted", 5, 5))
    world.calls += world.core.give_back(world.now)
    while world.calls:
        world.reply(Reply(0, "granted", 0, 0))
    world.check()
