"""What one decision costs on the fast path: granted and refused, by what applies to the name.

    python bench/decisions.py [--json]

Two names: one with a single limit (a namespace's group, messages only), and one in three groups
(topic, namespace, tenant) of two dimensions each. Beside them, in the same run: a pair of buckets
alone, and a float token bucket as one would write it in ten lines.
An item of an array is measured from the bytes of
the body to the bytes of the answer: decoded, decided and encoded by the HTTP adapter's own code.
Every figure is the best of `REPEATS` passes, which take turns, so that a busy machine hits all alike.
Making the question is part of it: the fields are given one by one, as the daemon gives them.
Not measured: HTTP, the clock that the daemon reads, the first question for a name.
"""

import argparse
import json
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final, cast

from rgd.adapters.http.acquire import Acquire
from rgd.adapters.http.reply import Call, Reply
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.turns import Turns
from rgd.core.buckets.bucket import PICO, Buckets
from rgd.core.buckets.decision import NOTHING, Answer, Request, Together
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.counts.counters import NO_SLOT
from rgd.core.policies.model import Attachments, Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, NS_PER_S, Kind, Nanos, to_milli
from rgd.ports.answers import Answers

CALLS: Final = 500
REPEATS: Final = 600
#: Questions in an array.
ITEMS: Final = 100
#: Between two questions: 100,000 a second.
STEP_NS: Final = 10_000

AMPLE: Final = 1_000_000_000
SCARCE: Final = 1
#: So much of it taken before leaves a debt that outlasts the run.
SPENT: Final = 3600
NAMESPACE: Final = "acme/orders"
TOPIC: Final = "persistent://acme/orders/eu"
SETTINGS: Final = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=3_600_000, round_ms=1000)

Ask = Callable[[Nanos], bool]


class FloatBucket:
    """The alternative: a bucket of floats, as in most libraries."""

    __slots__ = ("at_s", "depth", "rate", "tokens")

    def __init__(self, rate: float, depth: float) -> None:
        self.rate = rate
        self.depth = self.tokens = depth
        self.at_s = 0.0

    def take(self, cost: float, now_s: float) -> bool:
        """Take, if there is enough."""
        self.tokens = min(self.depth, self.tokens + (now_s - self.at_s) * self.rate)
        self.at_s = now_s
        if self.tokens < cost:
            return False
        self.tokens -= cost
        return True


def one_limit(units: int) -> PolicySnapshot:
    """A namespace in one group that limits messages."""
    group = Group("gold", Limit(Rates(to_milli(units))))
    return PolicySnapshot({"gold": group}, Attachments(namespaces={NAMESPACE: "gold"}))


def three_groups(units: int) -> PolicySnapshot:
    """A topic, its namespace and its tenant in a group each; six buckets."""
    quota = Limit(Rates(to_milli(units), to_milli(units * 1000)))
    return PolicySnapshot(
        {name: Group(name, quota) for name in ("topic", "space", "tenant")},
        Attachments({"acme": "tenant"}, {NAMESPACE: "space"}, {TOPIC: "topic"}),
    )


def limiter_of(snapshot: PolicySnapshot, *, spent: int) -> Ask:
    """Asks a limiter, of which `spent` messages were taken before, for one message of 1,000 bytes."""
    limiter = Limiter(SETTINGS, lambda group, kind, _: (NO_SLOT, group.rates(kind)))
    limiter.set_policies(snapshot, Nanos(0))
    if spent:
        limiter.acquire(Request(messages=spent, namespace=NAMESPACE, topic=TOPIC), Nanos(0))

    decide, publish, is_partial = limiter.decide, Kind.PUBLISH, False

    def ask(now: Nanos) -> bool:
        answer = decide(publish, 1, 1000, None, NAMESPACE, TOPIC, None, is_partial, 1, NOTHING, now)
        return answer.granted  # type: ignore[union-attr]

    return ask


def bucket_of(rate: int, *, spent: int) -> Ask:
    """Asks one exact pair of buckets, of which one is limited."""
    bucket = Buckets(SETTINGS.burst_ns, Nanos(0))
    bucket.flow(Rates(to_milli(rate)), Nanos(0))
    bucket.take(spent, 0)

    def ask(now: Nanos) -> bool:
        granted = bucket.admits(PICO, 0, now)
        if granted:
            bucket.take(1, 0)
        return granted

    return ask


def float_bucket_of(rate: float, *, spent: float) -> Ask:
    """Asks one float bucket."""
    bucket = FloatBucket(rate, rate / 4)
    bucket.tokens -= spent

    def ask(now: Nanos) -> bool:
        return bucket.take(1.0, now / NS_PER_S)

    return ask


class LimiterAlone:
    """As much of a daemon as an array needs (`rgd.ports.answers.Answers`)."""

    def __init__(self) -> None:
        self.limiter = Limiter(SETTINGS, lambda group, kind, _: (NO_SLOT, group.rates(kind)))
        self.limiter.set_policies(one_limit(AMPLE), Nanos(0))
        self.now = Nanos(0)

    def acquire(self, request: Request) -> Answer:
        """Decide one question."""
        return self.limiter.decide(*request, self.now)

    def acquire_together(self, asked: Collection[Together]) -> bool:
        """Grant all or nothing."""
        return self.limiter.grant_together(asked, self.now)

    def names_resolved(self) -> int:
        """How many names were new."""
        return self.limiter.resolved_total


class NoTurns(Turns):
    """Of a caller who has the loop to himself; here there is none."""

    def take(self) -> bool:
        return True


def array_of(topics: int) -> Ask:
    """Asks with an array of questions about so many topics: from the body's bytes to the answer's."""
    daemon = LimiterAlone()
    acquire = Acquire(cast("Answers", daemon), HttpSettings(), NoTurns())
    items = [
        {"tenant": "acme", "namespace": "orders", "topic": f"t{order % topics}"}
        | {"messages": 1 + order % 3, "bytes": 1000 + order, "attempt": 1}
        for order in range(ITEMS)
    ]
    call = Call({}, {}, json.dumps(items).encode())
    granted = b'"granted":true'
    for order in range(topics):
        name = f"persistent://{NAMESPACE}/t{order}"
        daemon.acquire(Request(messages=0, namespace=NAMESPACE, topic=name))

    def ask(now: Nanos) -> bool:
        daemon.now = now
        return answered(acquire, call).count(granted) == ITEMS

    return ask


def answered(acquire: Acquire, call: Call) -> bytes:
    """The body of the reply; an array of one slice never waits."""
    reply = acquire.answer(call)
    assert isinstance(reply, Reply), "an array of one slice does not wait"
    return reply.body


#: Arrays, by what is asked.
ARRAYS: Final[dict[str, Ask]] = {
    "array_item_us": array_of(topics=1),
    "array_item_ten_topics_us": array_of(topics=10),
    "array_item_each_topic_us": array_of(topics=ITEMS),
}

#: What is asked, and whether it grants.
CASES: Final[dict[str, tuple[Ask, bool]]] = {
    "one_limit_granted_us": (limiter_of(one_limit(AMPLE), spent=0), True),
    "one_limit_refused_us": (limiter_of(one_limit(SCARCE), spent=SPENT), False),
    "three_groups_granted_us": (limiter_of(three_groups(AMPLE), spent=0), True),
    "three_groups_refused_us": (limiter_of(three_groups(SCARCE), spent=SPENT), False),
    "bucket_granted_us": (bucket_of(AMPLE, spent=0), True),
    "bucket_refused_us": (bucket_of(SCARCE, spent=SPENT), False),
    "float_bucket_granted_us": (float_bucket_of(AMPLE, spent=0), True),
    "float_bucket_refused_us": (float_bucket_of(SCARCE, spent=SPENT), False),
}


def pass_us(ask: Ask, begin: int, calls: int = CALLS) -> tuple[float, int]:
    """Microseconds a call over one pass, and how many were granted."""
    moments = cast("Sequence[Nanos]", range(begin, begin + calls * STEP_NS, STEP_NS))
    begun = time.perf_counter_ns()
    granted = sum(map(ask, moments))
    return (time.perf_counter_ns() - begun) / calls / 1000, granted


def measure() -> dict[str, float]:
    """All figures."""
    best = dict.fromkeys((*CASES, *ARRAYS), float("inf"))
    for repeat in range(1, REPEATS + 1):
        for name, (ask, grants) in CASES.items():
            took_us, granted = pass_us(ask, repeat * CALLS * STEP_NS)
            assert granted == (CALLS if grants else 0), f"{name}: granted {granted}"
            best[name] = min(best[name], took_us)
        for name, ask in ARRAYS.items():
            took_us, granted = pass_us(ask, repeat * CALLS * STEP_NS, CALLS // ITEMS)
            assert granted == CALLS // ITEMS, f"{name}: granted {granted}"
            best[name] = min(best[name], took_us / ITEMS)
    figures = {name: round(took_us, 3) for name, took_us in best.items()}
    float_us = best["float_bucket_granted_us"]
    for name in (*CASES, *ARRAYS):
        if not name.startswith("float"):
            figures[f"{name.removesuffix('_us')}_to_float_bucket"] = round(best[name] / float_us, 2)
    bare_us = best["bucket_granted_us"]
    figures["one_limit_to_bucket"] = round(best["one_limit_granted_us"] / bare_us, 1)
    figures["bucket_to_float_bucket"] = round(bare_us / best["float_bucket_granted_us"], 2)
    figures["refused_to_granted"] = round(
        best["one_limit_refused_us"] / best["one_limit_granted_us"], 1
    )
    return figures


def main() -> None:
    """Measure, print a table or one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    options = parser.parse_args()
    figures = measure()
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value:>10,.3f}")


if __name__ == "__main__":
    main()
