"""Carries rounds and policies to the usage log.

Law: the event loop hands over and goes on: encoding and writing are the log's thread's. Policies that
changed are logged before the next round that goes by them, once for all changes of a round.
What is lost is counted by the log (`rgd_log_lost_total`). Logging never holds limiting up.
"""

from rgd.app.containment import InternalErrors
from rgd.core.exchange.messages import PoliciesInForce, RoundRecord
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.usagelog import UsageLog


class Recorder:
    """What a daemon has to log, on its way to the usage log."""

    def __init__(self, usage_log: UsageLog, errors: InternalErrors) -> None:
        self._usage_log = usage_log
        self._errors = errors
        #: Policies that are in force and not logged yet.
        self._policies: tuple[PolicySnapshot, int] | None = None

    def policies(self, snapshot: PolicySnapshot, policies_hash: int) -> None:
        """Take note of the policies in force."""
        self._policies = (snapshot, policies_hash)

    def add(self, record: RoundRecord, unix_ms: int) -> None:
        """Log a round, stamped with the broker's time."""
        policies, self._policies = self._policies, None
        if policies is not None:
            in_force = PoliciesInForce(record.sender, *policies)
            self._usage_log.append(in_force, broker_timestamp_ms=unix_ms)
        self._usage_log.append(record, broker_timestamp_ms=unix_ms)

    def fault(self, error: Exception) -> None:
        """Something could not be encoded; the log has counted it."""
        self._errors.note("record", error)
