"""The compiled fast path decides as a plain walk over the levels does, whatever is asked.

The walk is written down here, from the laws of `rgd.core.buckets.limiter`, with one list of levels and no preparation.
Not covered: divided shares (test_topic_split.py), what counts as demand (tests/unit/core/buckets).
"""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import NOTHING, Answer, Decision, Level, Request, TooLarge
from rgd.core.buckets.level import BucketSettings, LevelState
from rgd.core.buckets.levels import LimitKey
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_MS, Dimension, Kind, Nanos
from tests.support.limiter_alone import numbered

SETTINGS = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)
NAMESPACE = "acme/orders"
TOPICS = (None, "persistent://acme/orders/eu", "persistent://acme/orders/us")
GROUPS = ("topic", "space", "tenant")

MILLIS = st.none() | st.integers(0, 300 * MILLI)
LIMITS = st.none() | st.builds(Rates, MILLIS, MILLIS)


@dataclass
class PlainLevel:
    """One level; tokens by dimension."""

    level: Level
    group: str | None
    rates: Rates
    shadow: bool = False
    at: int = 0
    tokens: dict[Dimension, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tokens = {dimension: self.depth(dimension) for dimension in Dimension}

    def depth(self, dimension: Dimension) -> int:
        return (self.rates.of(dimension) or 0) * SETTINGS.burst_ns

    def refill(self, now: int) -> None:
        for dimension in Dimension:
            flowed = (self.rates.of(dimension) or 0) * (now - self.at)
            full = self.depth(dimension)
            self.tokens[dimension] = min(full, self.tokens[dimension] + flowed)
        self.at = now

    def admits(self, dimension: Dimension, units: int) -> bool:
        rate, tokens = self.rates.of(dimension), self.tokens[dimension]
        if rate is None or units == 0 or tokens >= units * PICO:
            return True
        return rate > 0 and tokens >= self.depth(dimension)

    def available(self, dimension: Dimension) -> int:
        if self.rates.of(dimension) is None:
            return COUNT_MAX
        return max(self.tokens[dimension] // PICO, int(self.admits(dimension, COUNT_MAX)), 0)

    def most(self, dimension: Dimension) -> int:
        rate = self.rates.of(dimension)
        return max(1, rate * SETTINGS.request_max_ms // 10**6) if rate else COUNT_MAX

    def wait_ms(self, dimension: Dimension, units: int) -> int:
        rate = self.rates.of(dimension)
        if rate is None or units == 0:
            return 0
        if rate == 0:
            return SETTINGS.round_ms
        missing = min(units * PICO, self.depth(dimension)) - self.tokens[dimension]
        return max(0, -(-missing // (rate * NS_PER_MS)))

    def take(self, cost: dict[Dimension, int]) -> None:
        for dimension, units in cost.items():
            if self.rates.of(dimension) is not None:
                self.tokens[dimension] -= units * PICO


def walk(  # noqa: C901, PLR0912 -- it is to be read from top to bottom beside the laws
    levels: list[PlainLevel], request: Request, now: int
) -> Answer:
    """The answer to one request, and what it leaves."""
    asked = {Dimension.MESSAGES: request.messages, Dimension.BYTES: request.bytes}
    for level in levels:
        level.refill(now)
    if not levels:
        return Decision(True, request.messages, request.bytes, governed=False)
    deciding = [level for level in levels if not level.shadow]
    granted, limiting = dict(asked), None
    if request.partial:
        for level in deciding:
            for dimension in Dimension:
                if level.available(dimension) < granted[dimension]:
                    granted[dimension], limiting = level.available(dimension), (level, dimension)
    else:
        for level in deciding:
            for dimension in Dimension:
                if asked[dimension] > (most := level.most(dimension)):
                    return TooLarge(level.level, level.group, dimension, most)
    needed = {at: min(1, units) if request.partial else units for at, units in asked.items()}
    refuses = [one for one in deciding if not all(one.admits(*cost) for cost in needed.items())]
    if refuses or any(granted[at] < needed[at] for at in Dimension):
        granted = dict.fromkeys(Dimension, 0)
    if any(granted.values()) or not (refuses or limiting):
        for level in levels:
            if not level.shadow or all(level.admits(*cost) for cost in granted.items()):
                level.take(granted)
    if not refuses and not limiting:
        return Decision(True, granted[Dimension.MESSAGES], granted[Dimension.BYTES])
    waits = [
        (level.wait_ms(dimension, needed[dimension]), level, dimension)
        for level in (deciding if request.partial else refuses)
        for dimension in Dimension
    ]
    wait_ms = max(wait for wait, _, _ in waits)
    if not any(granted.values()):
        limiting = next((level, at) for wait, level, at in waits if wait == wait_ms)
    assert limiting is not None
    level, dimension = limiting
    return Decision(
        any(granted.values()),
        granted[Dimension.MESSAGES],
        granted[Dimension.BYTES],
        limited_by=level.level,
        group=level.group,
        dimension=dimension,
        retry_after_ms=wait_ms or 1,
        quota=(level.rates.of(dimension) or 0) // MILLI,
        remaining=max(0, level.tokens[dimension] // PICO),
    )


@st.composite
def houses(draw: st.DrawFn) -> tuple[PolicySnapshot, list[PlainLevel]]:
    """Policies, and the plain levels of each limit in them."""
    limits = {name: draw(LIMITS) for name in ("broker", *GROUPS, "topics", "subscriptions")}
    groups = {
        name: Group(name, Limit(rates), shadow=draw(st.booleans()))
        for name in GROUPS
        if (rates := limits[name]) is not None
    }
    attached = [{at: name} if name in groups else {} for at, name in
                (("acme", "tenant"), (NAMESPACE, "space"), (TOPICS[1] or "", "topic"))]  # fmt: skip
    of_topics, of_subscriptions = limits["topics"], limits["subscriptions"]
    snapshot = PolicySnapshot(
        groups,
        Attachments(*attached),
        Limits(
            broker=LocalLimit(limits["broker"]),
            namespaces={} if of_topics is None else {NAMESPACE: LocalLimit(of_topics)},
            namespace_subscriptions={}
            if of_subscriptions is None
            else {NAMESPACE: LocalLimit(of_subscriptions)},
        ),
    )
    levels = []
    if (rates := limits["broker"]) is not None and not rates.is_unlimited:
        levels.append(PlainLevel(Level.BROKER, None, rates))
    levels += [
        PlainLevel(Level.RESOURCE_GROUP, name, group.quota.publish, group.shadow)
        for name, group in groups.items()
    ]
    return snapshot, levels


#: The same amounts often: what was refused a moment ago is asked again.
AMOUNTS = st.sampled_from((0, 1, 1, 20)) | st.integers(0, 500)
ASKS = st.lists(
    st.tuples(
        st.builds(
            Request,
            kind=st.just(Kind.PUBLISH),
            group=st.none(),
            held=st.just(NOTHING),
            messages=AMOUNTS,
            bytes=AMOUNTS,
            namespace=st.just(NAMESPACE),
            topic=st.sampled_from(TOPICS),
            subscription=st.sampled_from((None, "s")),
            partial=st.booleans(),
            attempt=st.integers(0, 2),
        ),
        st.sampled_from((0, NS_PER_MS)) | st.integers(0, 400 * NS_PER_MS),
    ),
    max_size=30,
)


class Walker:
    """The levels of every name, by the walk."""

    def __init__(self, snapshot: PolicySnapshot, levels: list[PlainLevel]) -> None:
        self.snapshot, self.levels = snapshot, levels
        self.limits: dict[tuple[str, ...], PlainLevel] = {}

    def of(self, request: Request, now: int) -> list[PlainLevel]:
        topic, limits = request.topic, self.snapshot.limits
        found = [one for one in self.levels if one.group != "topic" or topic == TOPICS[1]]
        if topic is not None:
            found += self._limit(Level.TOPIC, limits.namespaces, (topic,), now)
            if request.subscription is not None:
                key = (topic, request.subscription)
                found += self._limit(Level.SUBSCRIPTION, limits.namespace_subscriptions, key, now)
        return found

    def _limit(
        self, level: Level, limits: object, key: tuple[str, ...], now: int
    ) -> list[PlainLevel]:
        assert isinstance(limits, dict)
        if NAMESPACE not in limits or limits[NAMESPACE].publish.is_unlimited:
            return []
        # The buckets of a topic begin when it is first asked for.
        new = PlainLevel(level, None, limits[NAMESPACE].publish, at=now)
        return [self.limits.setdefault(key, new)]


@given(houses(), ASKS)
def test_the_fast_path_answers_and_leaves_what_a_plain_walk_does(
    house: tuple[PolicySnapshot, list[PlainLevel]], asks: list[tuple[Request, int]]
) -> None:
    snapshot, levels = house
    limiter, walker, now = (
        Limiter(SETTINGS, numbered(lambda one, kind, _: one.rates(kind))),
        Walker(*house),
        0,
    )
    limiter.set_policies(snapshot, Nanos(0))
    for request, gap_ns in asks:
        now += gap_ns
        assert limiter.acquire(request, Nanos(now)) == walk(walker.of(request, now), request, now)
        for level in levels:
            level.refill(now)
            real = real_level(limiter, level)
            for dimension in Dimension:
                if real is not None and level.rates.of(dimension) is not None:
                    assert real.tokens(dimension, Nanos(now)) == level.tokens[dimension]


def real_level(limiter: Limiter, level: PlainLevel) -> LevelState | None:
    if level.group is None:
        return limiter.limit(LimitKey(Kind.PUBLISH, Level.BROKER))
    return next((one for one in limiter.states() if one.group == level.group), None)
