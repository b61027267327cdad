"""What a full round costs at PIP-82's scale: 5,000 groups of its own, 100 brokers' reports.

    python bench/rounds.py [--json] [--scale 1 2 4] [--changed 1.0] [--own 1.0] [--shared]

The PIP's cluster: 100,000 groups, each on 5 of 100 brokers. One real core receives what the 99 others
publish in a round (decoded from the wire), takes its own report back, ends its round (5,000 meters,
estimates, suppression, report and log record), and reckons every share anew that any of it moved.
Of what is woken, closing the windows is measured apart too (`closing_ms`), and so is a page of all rows (`page_us_a_row`).
At the end all 99 fall silent at once and expire (`expiry_longest_ms`, the longest piece of work then), and it loses its name (`depth_longest_ms`).
`--changed` is the part of the rows that the peers tell (1: all of them, with other rates every round).
`--own` is the part of its own groups that callers ask in a round, each at a steady rate; the others rest.
So with `--changed 0.1` alone this broker still counts, closes and logs all of its own groups.
With `--shared` the others tell of its own groups only, which all have policies here.
Garbage is collected as rarely as in the daemon. Beside it, in the same run, numpy's fastest sort of as
many numbers as rows were received (`bench.harness.numpy_sort_s`).
Not measured: the sockets, and callers (bench/rounds_http.py has both at once).
"""

import argparse
import gc
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np

from bench.harness import Figures, numpy_sort_s, run
from rgd.app.process import GC_THRESHOLDS
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Append, Effect, Publish
from rgd.core.broker.events import MessageReceived, PoliciesChanged, Started, Woken
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.demand.marks import Flags, Ints
from rgd.core.demand.table import Closed
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Message, Report, Sender
from rgd.core.exchange.precision import rounded
from rgd.core.exchange.report_parts import parts_of_rows
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_S, Nanos
from rgd.wire.codec import decode, encode
from rgd.wire.log_records import LogEncoder
from rgd.wire.name_dictionary import NameDecoders, NameEncoder

BROKERS: Final = 100
OWN_GROUPS: Final = 5_000
BROKERS_A_GROUP: Final = 5
QUOTA: Final = 1_000 * MILLI
ROUNDS: Final = 3
#: Rounds of silence after which no peer is left.
EXPIRED_AFTER: Final = 6


class Stopwatch:
    """Seconds by what was done, and the longest single piece."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.longest: dict[str, float] = defaultdict(float)

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Add the time of the block."""
        begun = time.process_time()
        yield
        took = time.process_time() - begun
        self.seconds[what] += took
        self.longest[what] = max(self.longest[what], took)


class Bench:
    """One core among peers that are made up."""

    def __init__(
        self, scale: int, changed: float, asked: float = 1.0, *, shared: bool = False
    ) -> None:
        self.dice = np.random.default_rng(scale)
        self.watch = Stopwatch()
        #: Of closing windows alone, which is a part of what is woken.
        self.closing = Stopwatch()
        self.now = Nanos(0)
        self.broker = Broker(BrokerSettings(Sender("broker-000", 1)), self.now)
        self._measure_closing()
        own = OWN_GROUPS * scale
        names = [f"tenant-{place // 50:05}.namespace-{place:07}.resources" for place in range(own)]
        foreign = own * (BROKERS - 1) // BROKERS_A_GROUP
        self.names = names + [f"tenant-{place:07}.elsewhere.resources" for place in range(foreign)]
        self.asked = names[:: max(1, round(1 / asked))]
        self.rows_of = [self._groups_of_peer(own, foreign) for _ in range(BROKERS - 1)]
        if shared:
            self.rows_of = [groups[groups < own] for groups in self.rows_of]
        self.changed = changed
        self.sequence = 0
        #: Of the others' reports.
        self.sequences = [0] * len(self.rows_of)
        #: What the others have told, for the hash that they say of it.
        self.told = UsageMap()
        self.numbering = NameEncoder()
        self.numbering_of = [NameEncoder() for _ in self.rows_of]
        self.name_decoders = NameDecoders()
        self.encoder = LogEncoder()
        snapshot = PolicySnapshot({name: Group(name, Limit(Rates(QUOTA))) for name in names})
        self._handle(PoliciesChanged(self.now, snapshot), "snapshot")
        self._handle(Started(self.now), "start")

    def round(self) -> None:
        """Everything that a core does in one round."""
        self._ask()
        self.sequence += 1
        for place, groups in enumerate(self.rows_of):
            told = (
                groups[self.dice.random(len(groups)) < self.changed]
                if self.sequence > 1
                else groups
            )
            for report in self.reports(place, told):
                payload = encode(report, self.numbering_of[place])
                with self.watch.measure("decode"):
                    message = decode(payload, self.name_decoders)
                self._handle(MessageReceived(self.now, message), "apply")
                self._let_work(self.now)
        # Time passes as the core asks for it: increases wait.
        self._let_work(Nanos(self.sequence * NS_PER_S))

    def page_us(self) -> float:
        """The gate's microseconds for a row of a page in which all of its groups changed."""
        news, took_s = self.broker.limiter.news, float("inf")
        for _ in range(ROUNDS):
            self._ask()
            begun, rows = time.process_time(), len(news.touched)
            news.collect(rows)
            took_s = min(took_s, (time.process_time() - begun) / rows)
        return took_s * 1e6

    def outlive_peers(self) -> float:
        """Seconds of the longest piece of work in the rounds after which all peers, silent together, expire."""
        self.watch = Stopwatch()
        self._let_work(Nanos(self.now + EXPIRED_AFTER * NS_PER_S))
        assert not self.broker.peers.names(), "all peers have expired by then"
        return self.watch.longest["woken"]

    def lose_depth(self) -> float:
        """Seconds of the longest piece in which all groups' buckets lose their depth, as where the name is lost."""
        self.watch = Stopwatch()
        with self.watch.measure("woken"):
            self.broker.sharing.become(Mode.YIELDING, self.now)
        self._let_work(self.now)
        return self.watch.longest["woken"]

    def _measure_closing(self) -> None:
        demand = self.broker.rounds.demand
        close = demand.close

        def measured(slots: Ints, is_advertised: Flags, now: int) -> Closed | None:
            with self.closing.measure("closing"):
                return close(slots, is_advertised, now)

        demand.close = measured  # type: ignore[method-assign]

    def _ask(self) -> None:
        for name in self.asked:
            self.broker.limiter.acquire(Request(messages=100, group=name), self.now)

    def _groups_of_peer(self, own: int, foreign: int) -> Any:
        shared = own * (BROKERS_A_GROUP - 1) // (BROKERS - 1)
        ours = self.dice.choice(own, shared, replace=False)
        theirs = own + self.dice.choice(foreign, own - shared, replace=False)
        return np.sort(np.concatenate((ours, theirs)))

    def report(self, place: int, groups: Any) -> Report:
        """What one of the others tells of some groups."""
        count = len(groups)
        wanted = np.zeros((count, 2), np.int64)
        wanted[:, 0] = self.dice.integers(1, 1000, count) * MILLI
        wanted[:, 1] = wanted[:, 0] * 200
        rows = UsageColumns(
            groups=tuple(self.names[group] for group in groups.tolist()),
            kinds=np.zeros(count, np.uint8),
            topics=np.ones(count, np.int64),
            admitted=rounded(wanted * 9 // 10),
            wanted=rounded(wanted),
        )
        sender = Sender(f"broker-{place + 1:03}", 1)
        report = Report(sender, self.sequence, NS_PER_S, rows=rows)
        self.told.apply(report)
        return replace(report, rows_hash=self.told.hash_of(sender.broker))

    def reports(self, place: int, groups: Any) -> Iterator[Report]:
        """The same in as many reports as it takes."""
        whole = self.report(place, groups)
        parts = parts_of_rows(whole.rows)
        for left, rows in zip(range(len(parts) - 1, -1, -1), parts, strict=True):
            self.sequences[place] += 1
            yield replace(whole, sequence=self.sequences[place], rows=rows, more=left > 0)

    def _let_work(self, until: Nanos) -> None:
        """Wake the core whenever it wants up to a moment, as the daemon would."""
        while (due := self.broker.wake_at) is not None and due <= until:
            self.now = max(self.now, due)
            self._handle(Woken(self.now), "woken")

    def _handle(self, event: Any, what: str) -> None:
        with self.watch.measure(what):
            effects = self.broker.handle(event)
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Append):
            with self.watch.measure("record"):
                # As the log's writer does: a large round in parts.
                items = self.encoder.items_of(effect.record)
            for item in items:
                with self.watch.measure("record"):
                    self.encoder.encode(item)
        elif isinstance(effect, Publish):
            self._echo(effect.message)

    def _echo(self, message: Message) -> None:
        with self.watch.measure("encode"):
            payload = encode(message, self.numbering)
        with self.watch.measure("decode"):
            message = decode(payload, self.name_decoders)
        self._handle(MessageReceived(self.now, message), "read_back")


def measure_scale(scale: int, options: argparse.Namespace) -> Figures:
    """The figures of one size: the least of some rounds."""
    bench = Bench(scale, options.changed, options.own, shared=options.shared)
    bench.round()
    rounds: list[tuple[float, Stopwatch, float]] = []
    for _ in range(ROUNDS):
        bench.watch, bench.closing = Stopwatch(), Stopwatch()
        bench.round()
        closing_s = bench.closing.seconds["closing"]
        rounds.append((sum(bench.watch.seconds.values()), bench.watch, closing_s))
    total_s, watch, closing_s = min(rounds, key=lambda measured: measured[0])
    rows = round(sum(len(groups) for groups in bench.rows_of) * options.changed)
    sort_ms = numpy_sort_s(rows) * 1000
    figures = {"rows": rows, "round_ms": total_s * 1000, "numpy_sort_ms": sort_ms}
    figures["to_numpy_sort"] = total_s * 1000 / sort_ms
    figures["map_mb"] = bench.broker.usage.nbytes / 1e6
    for what, seconds in watch.seconds.items():
        figures[f"{what}_ms"] = seconds * 1000
        figures[f"{what}_longest_ms"] = watch.longest[what] * 1000
    figures |= {"closing_ms": closing_s * 1000, "page_us_a_row": bench.page_us()}
    figures["expiry_longest_ms"] = bench.outlive_peers() * 1000
    figures["depth_longest_ms"] = bench.lose_depth() * 1000
    return {name: round(value, 2) for name, value in figures.items()}


def own_map_mb(scale: int) -> float:
    """The map of a core that holds its own groups' rows and no others, in its own arrays."""
    bench = Bench(scale, 1.0, shared=True)
    bench.round()
    return bench.broker.usage.nbytes / 1e6


def measure(options: argparse.Namespace) -> Figures:
    """All figures, each with its size in front."""
    gc.set_threshold(*GC_THRESHOLDS)
    figures: dict[str, float] = {}
    for scale in options.scale:
        figures |= {
            f"x{scale}_{name}": value for name, value in measure_scale(scale, options).items()
        }
        figures[f"x{scale}_own_map_mb"] = round(own_map_mb(scale), 2)
    return figures


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--scale", type=int, nargs="+", default=[1], help="times 5,000 groups")
    parser.add_argument("--changed", type=float, default=1.0, help="part of the rows sent, 0 to 1")
    parser.add_argument("--shared", action="store_true", help="the others' groups are its own")
    parser.add_argument("--own", type=float, default=1.0, help="part of its groups asked, 0 to 1")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
