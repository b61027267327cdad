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
UNLOGGED: Final = "unlogged"
#: Messages that no daemon sealed, on the embedded broker.
UNAUTHENTICATED: Final = "unauthenticated"


class Telemetry:
    """A daemon's figures; fulfils `rgd.ports.metrics.MetricsSource`."""

    def __init__(self, daemon: RgdDaemon) -> None:
        self._daemon = daemon

    def samples(self) -> list[Sample]:
        """Every figure as it stands now."""
        return [*self._of_groups(), *self._of_exchange(), *self._of_log()]

    def _of_groups(self) -> Iterator[Sample]:
        core = self._daemon.core
        for state in core.limiter.states():
            yield from _of_group(state)
            for dimension, rate in zip(Dimension, core.rounds.told_wanted(state.key), strict=True):
                yield Sample("rgd_wanted", (*state.key, dimension), to_units(rate))
        yield Sample("rgd_ungoverned_total", (), core.limiter.ungoverned_total)

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
        yield Sample("rgd_reports_dropped_total", (UNLOGGED,), daemon.recorder.lost)
        exchange = daemon.parts.exchange
        yield Sample("rgd_reports_dropped_total", (OVERFLOW,), exchange.dropped)
        yield Sample("rgd_reports_dropped_total", (UNAUTHENTICATED,), exchange.unauthenticated)
        yield Sample("rgd_rows_suppressed_total", (), core.rounds.rows_suppressed)
        yield Sample("rgd_isolated", (), core.mode.is_isolated)
        yield Sample("rgd_policy_hash_conflict", (), bool(core.differing))

    def _of_log(self) -> Iterator[Sample]:
        log = self._daemon.parts.usage_log
        yield Sample("rgd_log_entries_total", (), log.appended)
        yield Sample("rgd_log_synced_index", (), log.synced_index)
        yield Sample("rgd_log_damaged_total", (), log.damaged)


def _of_group(state: GroupState) -> Iterator[Sample]:
    admitted, _ = state.meter.totals()
    yield from _rates("rgd_quota", state, state.quota)
    yield from _rates("rgd_share", state, state.share)
    for dimension, count in zip(Dimension, admitted, strict=True):
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
