"""What must hold while a world runs, whatever goes wrong in it.

After every event: shares in force are watched, and members that agree never hand out more than the
quota. At each boundary: nobody granted more than its bucket's law allows, the core's own invariants,
and agreement once everything has been in order for long enough. After the run: the integral of all
shares over any round, admitted over any one and ten rounds, and that nobody starved.

Law: a broken rule is noted with its moment and never raised, so that a run always ends; what a rule
says is checked from outside, through shares in force and what the load counted. The rules of
`max-min` are asked of no other policy; the buckets' law holds for all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rgd.core.errors import InvariantBroken
from rgd.core.policies.model import GroupKey, Rates, SharePolicyName
from rgd.core.units import MILLI, NS_PER_S
from sim.cluster import Cluster
from sim.integral import StepIntegral
from sim.laws import laws_of
from sim.member import Member
from sim.recording import Recording

#: Groups whose shares are followed event by event; of more, these are a sample.
WATCHED_MAX = 4
#: How often a broken law is kept; one bug breaks it again and again.
_VIOLATIONS_MAX = 5
#: Is no share that is in force anywhere: shares are compared by identity.
_NEVER_SEEN = Rates()
#: Members times groups that are asked to validate themselves at one boundary.
_VALIDATED_MAX = 40
#: How far apart members may be that agree, in parts of the quota.
_AGREED_WITHIN = 0.02


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken."""

    law: str
    at_s: float
    story: str

    def __str__(self) -> str:
        return f"{self.law} at {self.at_s:.3f} s: {self.story}"


class Checkers:
    """Watches one cluster."""

    def __init__(self, cluster: Cluster, policy: str) -> None:
        self.violations: list[Violation] = []
        self._cluster = cluster
        self._scenario = cluster.scenario
        self._is_max_min = policy == SharePolicyName.MAX_MIN
        self._is_core = policy in list(SharePolicyName)
        self._keys = cluster.keys[:WATCHED_MAX]
        self._places = {name: place for place, name in enumerate(cluster.names)}
        self._quota = [round(one * MILLI) for one in cluster.quota]
        #: The dimensions with a quota, and the quota.
        self._limited = [(k, one) for k, one in enumerate(self._quota) if one]
        #: By (group, dimension, place).
        self._in_force: dict[tuple[int, int, int], StepIntegral] = {}
        #: The share that was in force last, by place and then by group, since the last boundary.
        self._seen = self._nothing_seen()
        #: All shares in force together, by (group, dimension).
        self._sums = {
            (group, dimension): StepIntegral(is_kept=True)
            for group in range(len(self._keys))
            for dimension, _ in self._limited
        }
        #: What the bucket's law allows each, by (group, dimension, place), since the last boundary.
        self._tokens: dict[tuple[int, int, int], float] = {}
        #: How often buckets were new since then: each may grant one request on debt.
        self._fresh: dict[tuple[int, int, int], int] = {}
        #: What a member computes all shares to be, by member and key, until something happens to it.
        self._view_of: dict[Member, dict[GroupKey, Mapping[str, Rates] | None]] = {}
        self._turn = 0
        self._ordered_since = 0
        #: What members have not agreed about at any moment since the last boundary, and how they differ.
        self._apart: dict[tuple[int, int], str] = {}
        cluster.world.watchers.append(self._on_event)
        cluster.on_boundary.append(self._on_boundary)

    def finish(self, recording: Recording) -> list[Violation]:
        """Check what needs the whole run; everything that was broken."""
        if self._is_max_min:
            self._check_sums()
        for law, number, story in laws_of(
            recording,
            self._cluster,
            is_max_min=self._is_max_min,
            is_core=self._is_core,
        ):
            self._note(law, story, number * recording.round_ns)
        return self.violations

    def _note(self, law: str, story: str, at_ns: int | None = None) -> None:
        if sum(one.law == law for one in self.violations) < _VIOLATIONS_MAX:
            at_ns = self._cluster.world.now if at_ns is None else at_ns
            self.violations.append(Violation(law, at_ns / NS_PER_S, story))

    # After every event.

    def _on_event(self, member: Member) -> None:
        self._view_of.pop(member, None)
        place = self._places[member.name]
        if self._cluster.members[place] is not member:
            return
        now, is_live, seen = self._cluster.world.now, member.is_live, self._seen[place]
        for group, key in enumerate(self._keys):
            share = member.brain.share(key) if is_live else None
            # Most events change no share, and a share is never changed in place.
            if has_changed := share is not seen[group]:
                seen[group] = share
            for dimension, quota in self._limited:
                if has_changed:
                    rate = 0 if share is None else (share.messages, share.bytes)[dimension]
                    self._follow((group, dimension, place), rate, now)
                sums = self._sums[group, dimension]
                if sums.rate > quota and self._is_max_min:
                    self._check_agreed(group, dimension, sums.rate)
        if self._apart:
            self._apart = self._disagreements(self._apart)

    def _nothing_seen(self) -> list[list[Rates | None]]:
        return [[_NEVER_SEEN] * len(self._keys) for _ in self._places]

    def _follow(self, where: tuple[int, int, int], rate: int | None, now: int) -> None:
        kept = self._in_force.get(where)
        if kept is None:
            kept = self._in_force[where] = StepIntegral()
        if rate is None:
            # Unlimited, as a broker cut off may be told to be: the whole quota, for the sum.
            kept.is_unlimited = True
            rate = self._quota[where[1]]
        if rate == kept.rate:
            return
        if kept.rate == 0:
            # Fresh buckets may come with tokens.
            burst_s = self._scenario.burst_ms / 1000
            self._tokens[where] = self._tokens.get(where, 0.0) + rate * burst_s
            self._fresh[where] = self._fresh.get(where, 0) + 1
        sums = self._sums[where[:2]]
        sums.change(sums.rate + rate - kept.rate, now)
        # What was granted since the last event may have been granted at either rate.
        kept.change_upwards(rate, now)

    def _check_agreed(self, group: int, dimension: int, total: int) -> None:
        if (views := self._views(group)) is not None and all(one == views[0] for one in views):
            self._note(
                "conservation",
                f"all agree, but {self._keys[group].group} has {total / MILLI:.3f} in force in "
                f"dimension {dimension}, of {self._quota[dimension] / MILLI:.3f}",
            )

    def _views(self, group: int) -> list[Mapping[str, Rates]] | None:
        """What each live member computes all shares to be; None as soon as two differ or one has none."""
        views: list[Mapping[str, Rates]] = []
        live = self._cluster.live
        if len({self._cluster.brokers[self._places[member.name]] for member in live}) < len(live):
            # Two use one name, and have yet to find out.
            return None
        for member in live:
            view = self._view(member, self._keys[group])
            if view is None or (views and view != views[0]):
                return None
            views.append(view)
        return views or None

    def _view(self, member: Member, key: GroupKey) -> Mapping[str, Rates] | None:
        views = self._view_of.setdefault(member, {})
        if key not in views:
            views[key] = member.brain.shares(key)
        return views[key]

    # At each boundary.

    def _on_boundary(self, boundary: int) -> None:
        # A share may have come into force with a request, without any event.
        for member in self._cluster.live:
            self._on_event(member)
        self._check_buckets(boundary)
        self._seen = self._nothing_seen()
        if self._is_core:
            self._validate()
        if self._is_max_min:
            self._check_healed()

    def _check_buckets(self, boundary: int) -> None:
        now = self._cluster.world.now
        for (group, dimension, place), kept in self._in_force.items():
            where = (group, dimension, place)
            flowed = kept.restart(now) / MILLI / NS_PER_S
            caller = self._cluster.callers[group][place]
            if boundary and not kept.is_unlimited:
                requests = 1 + self._fresh.pop(where, 0)
                tokens = self._tokens.get(where, 0.0) / MILLI
                most = flowed + tokens + requests * caller.largest[dimension]
                counts = caller.admitted_bytes if dimension else caller.admitted_messages
                admitted = counts[boundary - 1]
                # A drifting clock makes its own seconds longer, by at most a thousandth.
                if admitted > most * 1.001 + 1:
                    self._note(
                        "bucket",
                        f"{self._cluster.names[place]} granted {admitted} in a round, "
                        f"its rate and tokens allow {most:.1f}",
                    )
            kept.is_unlimited = False
            self._tokens[where] = self._tokens_of(place, group, dimension) * MILLI

    def _tokens_of(self, place: int, group: int, dimension: int) -> float:
        member = self._cluster.members[place]
        if member is None or not member.is_live:
            return 0.0
        now = member.clock.local_time(self._cluster.world.now)
        return member.brain.tokens(self._keys[group], now)[dimension]

    def _validate(self) -> None:
        live = self._cluster.live
        most = max(1, _VALIDATED_MAX // len(self._cluster.keys))
        for _ in range(min(most, len(live))):
            self._turn += 1
            member = live[self._turn % len(live)]
            try:
                member.brain.validate()
            except InvariantBroken as broken:
                self._note("invariant", f"{member.name}: {broken}")

    def _check_healed(self) -> None:
        cluster, now = self._cluster, self._cluster.world.now
        network, round_ns = cluster.world.network, self._scenario.round_ns
        is_rough = bool(network.loss or network.straggling or network.duplication)
        begin_ns = self._scenario.warmup * round_ns
        apart, self._apart = self._apart, {}
        # A goodbye for ever is over when it is sent, as a late start is: it is a step.
        acting = [
            fault
            for fault in cluster.acting
            if not (fault.deed.is_membership and fault.end_ns is None)
        ]
        if acting or is_rough or now < begin_ns or not cluster.faults:
            self._ordered_since = now
            return
        wait_ns = self._scenario.bounds.heals_in_rounds * round_ns
        is_stepping = any(now - 2 * round_ns <= step <= now for step in cluster.steps)
        if now - self._ordered_since < wait_ns or is_stepping:
            return
        for (group, _), story in apart.items():
            self._note("agreement", f"{self._keys[group].group}: {story} after healing")
        self._apart = self._disagreements(self._sums)

    def _disagreements(self, among: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """Which of these groups and dimensions members do not agree about just now.

        It is no fault yet: the reports of one round may be under way. It is one if nobody is of one
        mind at any moment of the next round.
        """
        found: dict[tuple[int, int], str] = {}
        for group, dimension in among:
            views = [self._view(one, self._keys[group]) for one in self._cluster.live]
            story = _disagreement(views, dimension, self._quota[dimension])
            if story is not None:
                found[group, dimension] = story
        return found

    # After the run.

    def _check_sums(self) -> None:
        most = self._scenario.bounds.shares
        if most is None:
            return
        round_ns = self._scenario.round_ns
        begin_ns = self._scenario.warmup * round_ns
        for (group, dimension), sums in self._sums.items():
            quota = self._quota[dimension] * round_ns
            highest, at_ns = sums.highest(round_ns, begin_ns, self._cluster.world.now)
            if highest > most * quota:
                story = (
                    f"{self._keys[group].group}: {highest / quota:.4f} quotas in force in a round"
                )
                self._note("excess", story, at_ns)


def _disagreement(
    views: list[Mapping[str, Rates] | None], dimension: int, quota: int
) -> str | None:
    """How members that compute these shares of all brokers disagree; None if they do not."""
    rows = []
    for view in views:
        if view is None or set(view) != set(views[0] or ()):
            return "not all believe in the same brokers"
        rows.append(
            [(rates.messages, rates.bytes)[dimension] or 0 for _, rates in sorted(view.items())]
        )
    apart = float(np.ptp(np.array(rows), axis=0).max()) if any(rows) else 0.0
    if apart <= _AGREED_WITHIN * quota:
        return None
    return f"two differ by {apart / MILLI:.3f} about one broker's share"
