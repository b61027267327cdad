"""Alarms in the log: each is written, and of many a count.

Not covered: when the core raises which (tests/unit/core/broker).
"""

from structlog.testing import capture_logs
from structlog.typing import EventDict

from rgd.app.alarms import LINES_A_MINUTE, AlarmLog
from rgd.core.broker.effects import Alarm, AlarmCode
from rgd.core.units import NS_PER_S, Nanos

ISOLATED, REJOINED = Alarm(AlarmCode.ISOLATED), Alarm(AlarmCode.REJOINED)


def told(log: AlarmLog, *alarms: Alarm, at_s: float = 0) -> list[EventDict]:
    """What is written of alarms of one moment."""
    with capture_logs() as lines:
        for alarm in alarms:
            log.tell(alarm, Nanos(int(at_s * NS_PER_S)))
    return lines


def test_an_alarm_is_written_with_its_broker_and_reason() -> None:
    log = AlarmLog("b1")
    assert told(log, ISOLATED) == [{"event": "isolated", "log_level": "warning", "broker": "b1"}]
    joined = Alarm(AlarmCode.PEER_JOINED, "b2", "of old")
    assert told(log, joined) == [
        {"event": "peer joined", "log_level": "info", "broker": "b2", "reason": "of old"}
    ]


def test_alarms_of_many_brokers_do_not_fill_the_log() -> None:
    log = AlarmLog("b1")
    alarms = [Alarm(AlarmCode.PEER_JOINED, f"invented-{place}") for place in range(5000)]
    assert len(told(log, *alarms)) == LINES_A_MINUTE
    # Other alarms are written as ever.
    assert len(told(log, ISOLATED)) == 1
    (summary,) = [line for line in told(log, ISOLATED, at_s=61) if "suppressed" in line]
    assert summary["suppressed"] == 5000 - LINES_A_MINUTE
    assert [line["event"] for line in told(log, alarms[0], at_s=62)] == ["peer joined"]
