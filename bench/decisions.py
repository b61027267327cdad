"""What one decision costs on the short road: granted and refused, by what applies to the name.

    python bench/decisions.py [--json]

Two names: one with a single limit (a namespace's group, messages only), and one in three groups
(topic, namespace, tenant) of two dimensions each. Beside them, in the same run: a pair of buckets
alone, and a float token bucket as one would write it in ten lines.
Every figure is the best of `REPEATS` passes, which take turns, so that a busy machine hits all alike.
Making the question is part of it: the fields are given one by one, as the daemon gives them.
Not measured: HTTP, the clock that the daemon reads, the first question for a name.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from typing import Final, cast

from rgd.core.buckets.bucket import PICO, Buckets
from rgd.core.buckets.decision import NOTHING, Decision, Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Attachments, Group, Limit, Rates
from rgd.core.units import NS_PER_MS, NS_PER_S, Kind, Nanos, to_milli

CALLS: Final = 20_000
REPEATS: Final = 15
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


def one_limit(units: int) -> PolicyBook:
    """A namespace in one group that limits messages."""
    group = Group("gold", Limit(Rates(to_milli(units))))
    return PolicyBook({"gold": group}, Attachments(namespaces={NAMESPACE: "gold"}))


def three_groups(units: int) -> PolicyBook:
    """A topic, its namespace and its tenant in a group each; six buckets."""
    quota = Limit(Rates(to_milli(units), to_milli(units * 1000)))
    return PolicyBook(
        {name: Group(name, quota) for name in ("topic", "space", "tenant")},
        Attachments({"acme": "tenant"}, {NAMESPACE: "space"}, {TOPIC: "topic"}),
    )


def limiter_of(book: PolicyBook, *, spent: int) -> Ask:
    """Asks a limiter, of which `spent` messages were taken before, for one message of 1,000 bytes."""
    limiter = Limiter(SETTINGS, lambda group, kind: group.rates(kind))
    limiter.set_book(book, Nanos(0))
    if spent:
        limiter.acquire(Request(messages=spent, namespace=NAMESPACE, topic=TOPIC), Nanos(0))

    decide, publish, is_partial = limiter.decide, Kind.PUBLISH, False

    def ask(now: Nanos) -> bool:
        answer = decide(publish, 1, 1000, None, NAMESPACE, TOPIC, None, is_partial, 1, NOTHING, now)
        return isinstance(answer, Decision) and answer.granted

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


def pass_us(ask: Ask, begin: int) -> tuple[float, int]:
    """Microseconds a question over one pass, and how many were granted."""
    moments = cast("Sequence[Nanos]", range(begin, begin + CALLS * STEP_NS, STEP_NS))
    begun = time.perf_counter_ns()
    granted = sum(map(ask, moments))
    return (time.perf_counter_ns() - begun) / CALLS / 1000, granted


def measure() -> dict[str, float]:
    """All figures."""
    best = dict.fromkeys(CASES, float("inf"))
    for repeat in range(1, REPEATS + 1):
        for name, (ask, grants) in CASES.items():
            took_us, granted = pass_us(ask, repeat * CALLS * STEP_NS)
            assert granted == (CALLS if grants else 0), f"{name}: granted {granted}"
            best[name] = min(best[name], took_us)
    figures = {name: round(took_us, 3) for name, took_us in best.items()}
    float_us = best["float_bucket_granted_us"]
    for name in CASES:
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
