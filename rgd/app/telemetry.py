"""The daemon's figures, under the names that `docs/metrics.md` lists.

Law: figures are read from the state itself when they are asked for; nothing is
kept twice. A list is returned, so that rendering may go on in another thread.
"""

from collections.abc import Iterator
from typing import Final

from rgd.app.daemon import RgdDaemon
from rgd.core.buckets.level import GroupState
from rgd.core.policies.model import Rates
from rgd.core.units import NS_PER_S, Dimension, to_units
from rgd.ports.metrics import Sample

#: Why sends failed, beside the reasons for which received reports are dropped.
OVERFLOW: Final = "overflow"
#: Messages that no daemon sealed, on the embedded broker.
UNAUTHENTICATED: Final = "unauthenticated"


class Telemetry:
    """A daemon's figures; fulfils `rgd.ports.metrics.MetricsSource`."""

    def __init__(self, daemon: RgdDaemon) -> None:
        self._daemon = daemon

    def samples(self) -> list[Sample]:
        """Every figure as it stands now."""
        samples: list[Sample] = []
        for figures in (self._of_groups, self._of_exchange, self._of_log, self._of_errors):
            try:
                samples += figures()
            except Exception as error:  # noqa: BLE001 -- the other figures are true all the same
                self._daemon.errors.note("metrics", error, may_end=False)
        return samples

    def _of_groups(self) -> Iterator[Sample]:
        core = self._daemon.core
        for state in core.limiter.states():
            yield from _of_group(state)
            for dimension, rate in zip(Dimension, core.rounds.told_wanted(state.key), strict=True):
                yield Sample("rgd_wanted", (*state.key, dimension), to_units(rate))
        limiter = core.limiter
        yield Sample("rgd_ungoverned_total", (), limiter.ungoverned_total)
        yield Sample("rgd_policies_unknown_granted_total", (), limiter.unknown_granted_total)
        yield Sample("rgd_policies_unknown_refused_total", (), limiter.unknown_refused_total)

    def _of_exchange(self) -> Iterator[Sample]:
        daemon, core = self._daemon, self._daemon.core
        now = daemon.parts.clock.now()
        yield Sample("rgd_peers", (), len(core.peers))
        for name in core.peers.names():
            peer = core.peers.get(name)
            age_ns = 0 if peer is None else now - peer.heard_at
            yield Sample("rgd_peer_age_seconds", (name,), age_ns / NS_PER_S)
        yield Sample("rgd_reports_sent_total", (), core.reports_sent)
        yield Sample("rgd_reports_received_total", (), core.reports_received)
        for reason, count in daemon.traffic.dropped.items():
            yield Sample("rgd_reports_dropped_total", (reason,), count)
        for reason, count in core.membership.dropped.items():
            yield Sample("rgd_reports_dropped_total", (reason,), count)
        exchange = daemon.parts.exchange
        yield Sample("rgd_reports_dropped_total", (OVERFLOW,), exchange.dropped)
        yield Sample("rgd_reports_dropped_total", (UNAUTHENTICATED,), exchange.unauthenticated)
        yield Sample("rgd_rows_suppressed_total", (), core.rounds.rows_suppressed)
        yield Sample("rgd_group_slots", (), core.index.given)
        yield Sample("rgd_group_slots_unknown", (), core.index.unknown)
        yield Sample("rgd_group_slots_refused_total", (), core.index.refused)
        yield Sample("rgd_groups_without_slot", (), core.sharing.slotless)
        yield Sample("rgd_isolated", (), core.mode.is_isolated)
        yield Sample("rgd_name_conflict", (), core.name.is_contested(now))
        yield Sample("rgd_forged_total", (), core.identity.forged_total)
        yield Sample("rgd_weights_bounded_total", (), core.membership.weights_bounded)
        yield Sample("rgd_policy_hash_conflict", (), bool(core.differing))
        figures = daemon.parts.policies.figures()
        yield Sample("rgd_policies_old", (), figures.is_old)
        yield Sample("rgd_policies_refused_total", (), figures.refused)
        yield Sample("rgd_policies_written_back_total", (), figures.written_back)
        yield Sample("rgd_policies_lost_total", (), figures.lost)

    def _of_log(self) -> Iterator[Sample]:
        log = self._daemon.parts.usage_log
        yield Sample("rgd_log_entries_total", (), log.appended)
        yield Sample("rgd_log_synced_index", (), log.synced_index)
        yield Sample("rgd_log_damaged_total", (), log.damaged)
        yield Sample("rgd_log_lost_total", (), self._daemon.recorder.lost_total)

    def _of_errors(self) -> Iterator[Sample]:
        for where, count in self._daemon.errors.counts.items():
            yield Sample("rgd_internal_errors_total", (where,), count)
        yield Sample("rgd_counts_lost_total", (), self._daemon.core.rounds.windows_lost)


def _of_group(state: GroupState) -> Iterator[Sample]:
    yield from _rates("rgd_quota", state, state.quota)
    yield from _rates("rgd_share", state, state.share)
    for dimension, count in zip(Dimension, state.counters.admitted, strict=True):
        yield Sample("rgd_admitted_total", (*state.key, dimension), count)
    for (level, dimension), count in state.refused.items():
        yield Sample("rgd_refused_total", (*state.key, dimension, level), count)
    if state.shadow:
        for dimension, count in zip(Dimension, state.shadow_refused, strict=True):
            yield Sample("rgd_shadow_refused_total", (*state.key, dimension), count)


def _rates(name: str, state: GroupState, rates: Rates) -> Iterator[Sample]:
    for dimension in Dimension:
        rate = rates.of(dimension)
        if rate is not None:
            yield Sample(name, (*state.key, dimension), to_units(rate))
