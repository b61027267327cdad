"""Many questions at once are answered, and leave what is left, exactly as one by one.

In the core, and through the HTTP adapter from the bytes of an array to the bytes of its answer.
Not covered: what one question is answered (test_limiter.py), slices and turns (tests/unit).
"""

import asyncio
import json
from collections.abc import Collection, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.http.acquire import Acquire
from rgd.adapters.http.reply import Call
from rgd.adapters.http.settings import HttpSettings
from rgd.core.buckets.decision import Decision, Request, Together
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit, Rates, TopicSplit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_MS, Dimension, Nanos
from tests.support.limiter_alone import LimiterAlone, numbered, whole
from tests.unit.adapters.http.small_daemon import SmallDaemon, reply_of

SETTINGS = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)
NAMESPACES = ("acme/orders", "acme/bills", "free/all")
TOPICS = (None, "eu", "us")
RATES = st.sampled_from((None, None, 400_000, 40_000, 4_000, 40, 0)).map(
    lambda units: None if units is None else units * MILLI
)
LIMITS = st.builds(Rates, RATES, RATES)


@st.composite
def snapshots(draw: st.DrawFn) -> PolicySnapshot:
    groups = {
        name: Group(
            name,
            Limit(draw(LIMITS), draw(LIMITS)),
            shadow=draw(st.sampled_from((False,) * 7 + (True,))),
            topic_split=draw(st.sampled_from((None,) * 7 + (TopicSplit.EVEN,))),
        )
        for name in ("tenant", "space")
    }
    topic_limit = draw(st.none() | LIMITS)
    return PolicySnapshot(
        groups,
        Attachments({"acme": "tenant"}, {NAMESPACES[0]: "space"}),
        Limits(
            namespaces={}
            if topic_limit is None
            else {NAMESPACES[1]: LocalLimit(topic_limit, topic_limit)}
        ),
    )


AMOUNTS = st.sampled_from((0, 1, 1, 5)) | st.integers(0, 300)
ITEMS = st.fixed_dictionaries(
    {"at": st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(TOPICS))},
    optional={
        "messages": AMOUNTS,
        "bytes": AMOUNTS,
        "kind": st.sampled_from(("publish", "publish", "dispatch")),
        "attempt": st.sampled_from((1, 1, 2)),
        "partial": st.sampled_from((False, False, True)),
        "held_messages": st.just(3),
        "group": st.sampled_from(("tenant", "nobody")),
        "messages ": st.just(1),
    },
)
PLAIN_ITEMS = st.fixed_dictionaries(
    {"at": st.tuples(st.sampled_from(NAMESPACES[:2]), st.sampled_from(TOPICS))},
    optional={"messages": AMOUNTS, "bytes": AMOUNTS, "attempt": st.just(1)},
)
ARRAYS = st.lists(
    st.lists(PLAIN_ITEMS, min_size=1, max_size=12)
    | st.lists(PLAIN_ITEMS, min_size=1, max_size=3)
    | st.lists(ITEMS, max_size=12),
    min_size=1,
    max_size=8,
)


def said(items: Iterable[dict[str, object]]) -> bytes:
    """The body of an array."""
    written = []
    for item in items:
        fields = dict(item)
        at = fields.pop("at")
        assert isinstance(at, tuple)
        namespace, topic = at
        if "group" not in fields:
            fields |= dict(zip(("tenant", "namespace"), namespace.split("/"), strict=True))
            fields |= {} if topic is None else {"topic": topic}
        written.append(fields)
    return json.dumps(written).encode()


def left(limiter: Limiter, now: Nanos) -> object:
    """Everything that decisions leave: tokens and counts."""
    levels = [*limiter.states(), *limiter.limits()]
    counted = [
        (
            one.key,
            [getattr(one.counters, name) for name in one.counters.__slots__ if name in COUNTED],
        )
        for one in limiter.states()
    ]
    tokens = [[level.tokens(dimension, now) for dimension in Dimension] for level in levels]
    refused = [level.refusals and level.refusals.since_start() for level in levels]
    return tokens, counted, refused, *_called_out(limiter)


def _called_out(limiter: Limiter) -> list[list[int]]:
    """The groups that the plane is to collect."""
    news = limiter.news
    return [[one.slot for one in news.touched], [*news.unreported]]


COUNTED = {
    "at", "bytes", "messages", "refusals", "refused_bytes", "refused_messages", "requests",
    "retries", "retried_messages", "topics", "held", "unsaid_messages", "touched_at",
}  # fmt: skip


class Granting(SmallDaemon):
    """Counts the arrays that were granted together."""

    def __init__(self, snapshot: PolicySnapshot, *, together: bool) -> None:
        super().__init__(snapshot)
        self.grants_together = together
        self.limiter = LimiterAlone(SETTINGS, whole)
        self.limiter.set_policies(snapshot, self.now)
        self.granted = 0
        # New names are decided one by one.
        for namespace in NAMESPACES:
            for topic in TOPICS:
                name = None if topic is None else f"persistent://{namespace}/{topic}"
                self.limiter.acquire(Request(messages=0, namespace=namespace, topic=name), self.now)

    def acquire_together(self, asked: Collection[Together]) -> bool:
        granted = super().acquire_together(asked)
        self.granted += granted
        return granted


def answers(daemon: SmallDaemon, arrays: Iterable[bytes]) -> list[bytes]:
    async def ask_all() -> list[bytes]:
        acquire, told = Acquire(daemon, HttpSettings()), []
        for body in arrays:
            daemon.advance(7)
            told.append((await reply_of(acquire.answer(Call({}, {}, body)))).body)
        return told

    return asyncio.run(ask_all())


@pytest.mark.slow
@given(snapshots(), ARRAYS)
def test_an_array_is_answered_as_its_items_one_by_one(
    snapshot: PolicySnapshot, arrays: list[list[dict[str, object]]]
) -> None:
    bodies = [said(items) for items in arrays]
    together, alone = Granting(snapshot, together=True), Granting(snapshot, together=False)
    assert answers(together, bodies) == answers(alone, bodies)
    assert left(together.limiter, together.now) == left(alone.limiter, alone.now)


def test_an_array_that_fits_is_granted_together() -> None:
    snapshot = PolicySnapshot(
        {"space": Group("space", Limit(Rates(400 * MILLI)))},
        Attachments(namespaces={NAMESPACES[0]: "space"}),
    )
    daemon = Granting(snapshot, together=True)
    body = json.dumps([{"tenant": "acme", "namespace": "orders", "messages": 5}] * 10).encode()
    # Twice all is there, and then too little is left.
    told = answers(daemon, [body, body, body])
    assert [one.count(b'"granted":true') for one in told] == [10, 10, 1]
    assert daemon.granted == 2


def test_questions_that_raise_half_way_take_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = PolicySnapshot(
        {"space": Group("space", Limit(Rates(400 * MILLI)))},
        Attachments(namespaces={NAMESPACES[0]: "space"}),
    )
    limiter = Limiter(SETTINGS, numbered(lambda group, kind, _: group.rates(kind)))
    limiter.set_policies(snapshot, Nanos(0))
    request = Request(namespace=NAMESPACES[0])
    assert isinstance(limiter.acquire(request, Nanos(0)), Decision)
    (state,) = limiter.states()
    before = state.tokens(Dimension.MESSAGES, Nanos(0))

    def boom(*_: object) -> None:
        raise OverflowError

    limiter.news.touched.clear()
    state.counters.is_touched = False
    monkeypatch.setattr(limiter.news, "on_news", boom)
    asked = Together((request.kind, None, request.namespace, None, None))
    asked.count, asked.messages = 3, 3
    with pytest.raises(OverflowError):
        limiter.grant_together([asked], Nanos(0))
    assert state.tokens(Dimension.MESSAGES, Nanos(0)) == before
