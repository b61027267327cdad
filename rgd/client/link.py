"""Whether the daemon answers, and when it is asked again after it did not.

Law: while it is away nobody waits for it. Only probes ask, with pauses that grow and are jittered, so
that clients which lost the same daemon do not return in step.
"""

import random

from rgd.backoff import Backoff


class Link:
    """Up until a call fails; away until a probe succeeds.

    Args:
        first_s, pause_s_max: the shortest and longest pause between probes, in seconds.
        dice: jitters them.
    """

    def __init__(self, first_s: float, pause_s_max: float, dice: random.Random) -> None:
        self._backoff = Backoff(first_s=first_s, pause_s_max=pause_s_max, dice=dice)
        self.is_up = True
        #: When the next probe is due, monotonic ns.
        self.probe_at = 0
        self.is_probing = False
        self._answered_at = -1

    def failed(self, sent_at: int, now: int) -> None:
        """A call or a probe of `sent_at` brought no answer."""
        if sent_at < self._answered_at or not (self.is_up or self.is_probing):
            # The daemon answered since; or another call failed before.
            return
        self.is_up = False
        self.is_probing = False
        self.probe_at = now + int(self._backoff.next_s() * 1e9)

    def succeeded(self, now: int) -> None:
        """A call or a probe was answered."""
        self._answered_at = now
        self.is_up = True
        self.is_probing = False
        self._backoff.reset()

    def probe_due(self, now: int) -> bool:
        """Whether to probe now; it is then on its way."""
        if self.is_up or self.is_probing or now < self.probe_at:
            return False
        self.is_probing = True
        return True
