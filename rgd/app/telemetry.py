"""The daemon's figures, under the names that `docs/metrics.md` lists.

Law: figures are read from the state itself when they are asked for; nothing is
kept twice. They are read one after the other, so that whoever renders them may rest in between.
"""

from collections.abc import Iterator
from itertools import repeat

from rgd.app.daemon import Agreeing
from rgd.app.health import never_reached
from rgd.app.process import BUILD
from rgd.app.throttled_samples import throttled_samples
from rgd.core.gate import looks
from rgd.core.policies.model import Rates
from rgd.core.units import NS_PER_S, Dimension, to_units
from rgd.ports.exchange import DROPS
from rgd.ports.metrics import Sample
from rgd.version import __version__
from rgd.views.figures import group_figures, known_subscriptions


class Telemetry:
    """A daemon's figures; fulfils `rgd.ports.metrics.MetricsSource`."""

    def __init__(self, daemon: Agreeing, *, by_topic: bool = True) -> None:
        """Of one daemon.

        Args:
            daemon: whose figures.
            by_topic: whether topics and their subscriptions have figures (`exposeTopicLevelMetricsInPrometheus`).
        """
        self._daemon = daemon
        self._by_topic = by_topic

    def samples(self) -> Iterator[Sample]:
        """Every figure as it stands when it is its turn."""
        contained = self._daemon.errors.figures
        yield from contained(self._of_groups)
        yield from contained(self._of_dispatch)
        yield from contained(self._of_leases)
        # Of few series; each part is of one moment.
        for figures in (self._of_exchange, self._of_log, self._of_errors):
            yield from list(contained(figures))

    def _of_groups(self) -> Iterator[Sample]:
        core = self._daemon.core
        for figures, wanted in group_figures(core):
            yield from _of_group(figures, wanted)
        ungoverned = core.gate.ask(looks.ungoverned)
        yield Sample("rgd_ungoverned_total", (), ungoverned.granted)
        yield Sample("rgd_policies_unknown_granted_total", (), ungoverned.unknown_granted)
        yield Sample("rgd_policies_unknown_refused_total", (), ungoverned.unknown_refused)

    def _of_leases(self) -> Iterator[Sample]:
        gate = self._daemon.core.gate
        figures = gate.ask(looks.leases)
        yield Sample("rgd_leases", (), figures.leases)
        for event, happened in figures.events.items():
            yield Sample("rgd_lease_events_total", (event,), happened)
        for key, held in looks.listed(gate, looks.leased):
            yield Sample("rgd_leased", (*key, Dimension.MESSAGES), held.messages)
            yield Sample("rgd_leased", (*key, Dimension.BYTES), held.bytes)

    def _of_dispatch(self) -> Iterator[Sample]:
        daemon, core = self._daemon, self._daemon.core
        if not self._by_topic:
            return iter(())
        return throttled_samples(core.gate, known_subscriptions(core), daemon.cluster, daemon.now())

    def _of_exchange(self) -> Iterator[Sample]:
        daemon, core = self._daemon, self._daemon.core
        now = daemon.parts.clock.now()
        health = daemon.health()
        yield Sample("rgd_build_info", (__version__, BUILD), 1)
        yield Sample("rgd_ready", (), health.ready)
        yield Sample("rgd_degraded", (), len(health.degraded))
        yield Sample("rgd_peers", (), len(core.peers))
        for name in core.peers.names():
            peer = core.peers.get(name)
            age_ns = 0 if peer is None else now - peer.received_at
            yield Sample("rgd_peer_age_seconds", (name,), age_ns / NS_PER_S)
        yield Sample("rgd_reports_sent_total", (), core.publisher.reports_sent)
        yield Sample("rgd_reports_received_total", (), core.reports_received)
        dropped = daemon.traffic.dropped + core.membership.dropped + daemon.shards.dropped
        for reason in sorted(dropped.keys() | DROPS):
            yield Sample("rgd_reports_dropped_total", (reason,), dropped[reason])
        yield Sample("rgd_rows_suppressed_total", (), core.rounds.rows_suppressed)
        yield Sample("rgd_group_slots", (), core.index.given)
        yield Sample("rgd_group_slots_unknown", (), core.index.unknown)
        yield Sample("rgd_group_slots_refused_total", (), core.index.refused)
        yield Sample("rgd_groups_without_slot", (), core.sharing.slotless)
        yield Sample("rgd_isolated", (), core.mode.is_isolated or never_reached(core))
        yield Sample("rgd_name_conflict", (), core.name.is_contested(now))
        yield Sample("rgd_weights_bounded_total", (), core.membership.weights_bounded)
        yield Sample("rgd_policy_hash_conflict", (), bool(core.membership.differing))
        figures = daemon.parts.policies.figures()
        yield Sample("rgd_policies_old", (), figures.is_old)
        yield Sample("rgd_policies_refused_total", (), figures.refused)
        yield Sample("rgd_policies_written_back_total", (), figures.written_back)
        yield Sample("rgd_policies_lost_total", (), figures.lost)
        yield Sample("rgd_policies_lacking", (), figures.lacking)
        yield Sample("rgd_policies_misplaced", (), figures.misplaced)

    def _of_log(self) -> Iterator[Sample]:
        log = self._daemon.parts.usage_log
        yield Sample("rgd_log_entries_total", (), log.appended)
        yield Sample("rgd_log_synced_index", (), log.synced_index)
        yield Sample("rgd_log_damaged_total", (), log.damaged)
        yield Sample("rgd_log_local_bytes", (), log.local_bytes)
        for reason, count in log.deleted.items():
            yield Sample("rgd_log_segments_deleted_total", (reason,), count)
        yield Sample("rgd_log_stopped", (), log.trouble is not None)
        yield Sample("rgd_log_lost_total", (), log.lost)

    def _of_errors(self) -> Iterator[Sample]:
        for where, count in self._daemon.errors.counts.items():
            yield Sample("rgd_internal_errors_total", (where,), count)


def _of_group(figures: looks.GroupReading, wanted: tuple[int, int]) -> Iterator[Sample]:
    labels = (*figures.key, Dimension.MESSAGES), (*figures.key, Dimension.BYTES)
    yield from _rates("rgd_quota", labels, figures.quota)
    yield from _rates("rgd_share", labels, figures.share)
    yield from map(Sample, repeat("rgd_admitted_total"), labels, figures.admitted)
    if any(figures.returned):
        yield from map(Sample, repeat("rgd_returned_total"), labels, figures.returned)
    for (level, dimension), count in figures.refused:
        yield Sample("rgd_refused_total", (*figures.key, dimension, level), count)
    yield from map(Sample, repeat("rgd_wanted"), labels, map(to_units, wanted))
    if figures.shadow_refused is not None:
        yield from map(Sample, repeat("rgd_shadow_refused_total"), labels, figures.shadow_refused)
    if figures.over is not None:
        yield from map(Sample, repeat("rgd_over_total"), labels, figures.over)


def _rates(name: str, labels: tuple[tuple[str, ...], ...], rates: Rates) -> Iterator[Sample]:
    for of_dimension, rate in zip(labels, (rates.messages, rates.bytes), strict=True):
        if rate is not None:
            yield Sample(name, of_dimension, to_units(rate))
