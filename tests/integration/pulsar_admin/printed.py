"""What a command of pulsar-admin printed, in a form that two servers can be compared by.

Kept: the words, the JSON, the HTTP status that the client logs. Left out: the time and the thread of
its log lines, the server's address, Java's stack traces, blank lines and indentation, and the order of
backlog quotas, which the client takes from a hash map.
The functions below `told` write in that form what a command prints; the script says with them what
differs.
"""

import json
import re

_LOGGED = re.compile(r"^\S+ \[[^\]]*\] WARN .*? HTTP (\d{3}) .*$", re.MULTILINE)
_TRACE = re.compile(r"^Stacktrace:\n(?:.*\n)*?(?=Reason:|\Z)", re.MULTILINE)
_FRAME = re.compile(r"^\s*(?:at \S+\(.*|\.\.\. \d+ more)$")
_QUOTA = re.compile(r"\w+ +BacklogQuotaImpl\(")


def told(printed: str) -> str:
    """What was printed, without what changes from run to run."""
    if printed.startswith("{"):
        return json.dumps(json.loads(printed))
    without_log = _LOGGED.sub(r"HTTP \1", printed)
    lines = (line.strip() for line in without_log.splitlines() if not _FRAME.match(line))
    kept = [line for line in lines if line]
    if all(_QUOTA.match(line) for line in kept):
        kept.sort()
    return _TRACE.sub("", "".join(f"{line}\n" for line in kept)).strip()


def refused(reason: str, status: int | None = None) -> str:
    """A refusal; the client logs the status of calls that change something."""
    logged = "" if status is None else f"HTTP {status}\n"
    return f"{logged}{reason}\nReason: {reason}"


def group(messages: int, size: int, read_messages: int, read_size: int) -> str:
    """A resource group's rates: published, then dispatched."""
    return json.dumps(
        {
            "publishRateInMsgs": messages,
            "publishRateInBytes": size,
            "dispatchRateInMsgs": read_messages,
            "dispatchRateInBytes": read_size,
        }
    )


def dispatch(messages: int, size: int, period_s: int = 1) -> str:
    """A dispatch rate."""
    return json.dumps(
        {
            "dispatchThrottlingRateInMsg": messages,
            "dispatchThrottlingRateInByte": size,
            "relativeToPublishRate": False,
            "ratePeriodInSecond": period_s,
        }
    )


def publish(messages: int, size: int) -> str:
    """A publish rate."""
    return json.dumps({"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size})


def backlog(kind: str, size: int, age_s: int, policy: str) -> str:
    """One line of backlog quotas."""
    told_size = f"limit={size}, limitSize={size}, limitTime={age_s}"
    return f"{kind}    BacklogQuotaImpl({told_size}, policy={policy})"
