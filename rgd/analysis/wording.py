"""Figures and findings in words, for the page and the terminal alike.

Law: a number has its unit, a time its zone, and what cannot be said is a dash, never a 0.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rgd.analysis.findings import STARVED_BELOW
from rgd.analysis.log_facts import LogFacts

Finding = dict[str, Any]

NOTHING: Final = "\N{EN DASH}"

#: Headings of the table of groups; `table_row` gives the cells.
COLUMNS: Final = (
    "group",
    "kind",
    "dimension",
    "wanted /s",
    "admitted /s",
    "quota /s",
    "utilisation",
    "overshoot",
    "Jain",
    "lowest ratio",
    "rounds to fair",
    "starved",
)

#: Groups that the sentences name; the table has them all.
NAMED_MAX: Final = 3

#: Mean of Jain's index from which a group is called fair.
FAIR_JAIN: Final = 0.95


def table_row(finding: Finding) -> tuple[str, ...]:
    """The cells of one group, kind and dimension."""
    dimension = finding["dimension"]
    return (
        finding["group"],
        finding["kind"],
        dimension,
        amount(finding["wanted"], dimension),
        amount(finding["admitted"], dimension),
        "unlimited" if finding["quota"] is None else amount(finding["quota"], dimension),
        percent(finding["utilisation"]),
        times(finding["overshoot_max"]),
        ratio(finding["jain_mean"]),
        ratio(finding["lowest_ratio"]),
        NOTHING if finding["rounds_to_fair"] is None else str(finding["rounds_to_fair"]),
        span(finding["starved_s"]) if finding["starved_s"] else NOTHING,
    )


def sentences(findings: Sequence[Finding], facts: LogFacts) -> list[str]:
    """What was found, in plain words: the log, the groups, what is missing."""
    return [_of_log(findings, facts), *_of_groups(findings), _of_gaps(findings, facts)]


def _of_log(findings: Sequence[Finding], facts: LogFacts) -> str:
    groups = len({finding["group"] for finding in findings})
    return (
        f"{_count(len(facts.brokers), 'broker')} logged {_count(facts.records, 'round')} of "
        f"{_count(groups, 'group')} between {moment(facts.from_ms)} and {moment(facts.to_ms)} UTC "
        f"({span((facts.to_ms - facts.from_ms) / 1000)}), looked at in windows of "
        f"{span(facts.window_ms / 1000)}."
    )


def _of_groups(findings: Sequence[Finding]) -> list[str]:
    limited = [finding for finding in findings if finding["quota"] is not None]
    if not limited:
        return ["No group has a quota, so everything that was wanted was to be admitted."]
    short = sorted(
        (finding for finding in limited if finding["unmet"] > 0),
        key=lambda finding: -finding["unmet"] / finding["wanted"],
    )
    if not short:
        return ["Every group was given all that it wanted."]
    said = [_of_group(finding) for finding in short[:NAMED_MAX]]
    if len(short) > NAMED_MAX:
        said.append(f"{len(short) - NAMED_MAX} more were short of their wishes: see the table.")
    return said


def _of_group(finding: Finding) -> str:
    dimension = finding["dimension"]
    said = (
        f"{finding['group']} ({finding['kind']}, {dimension}) wanted "
        f"{amount(finding['wanted'], dimension)}/s of a quota of "
        f"{amount(finding['quota'], dimension)}/s and got {amount(finding['admitted'], dimension)}/s, "
        f"{percent(finding['utilisation'])} of what the quota had room for."
    )
    jain = finding["jain_mean"]
    if jain is None:
        return said
    said += (
        f" It was split {'fairly' if jain >= FAIR_JAIN else 'unfairly'} on the whole (Jain's index "
        f"{ratio(jain)} of 1 on average)"
    )
    if finding["lowest_ratio"] is not None:
        said += (
            f"; the least that a broker got was {percent(finding['lowest_ratio'])} of its max-min "
            f"part ({finding['lowest_ratio_broker']} at {clock(finding['lowest_ratio_at_ms'])} UTC)"
        )
    return f"{said}.{_of_starved(finding)}"


def _of_starved(finding: Finding) -> str:
    if not finding["starved"]:
        return ""
    worst = finding["starved"][0]
    count = finding["starved_intervals"]
    return (
        f" Brokers were starved (below {percent(STARVED_BELOW)} of their part) "
        f"{_count(count, 'time')}, longest {worst['broker']} for "
        f"{span((worst['to_ms'] - worst['from_ms']) / 1000)} from {clock(worst['from_ms'])} UTC."
    )


def _of_gaps(findings: Sequence[Finding], facts: LogFacts) -> str:
    unknown = _of_unknown(facts)
    if not (facts.missing or facts.damaged or facts.torn_bytes or unknown):
        return "Nothing is missing: every record could be read, and none was lost on the way."
    said = []
    if facts.missing:
        recovered = any(finding["recovered"] for finding in findings)
        saved = (
            "; what was counted in them is known from the totals of the next ones and was spread "
            "evenly over the gaps"
            if recovered
            else ""
        )
        verb = "is" if facts.missing == 1 else "are"
        said.append(f"{_count(facts.missing, 'record')} {verb} missing{saved}.")
    if facts.damaged:
        file, offset, reason = facts.damages[0]
        said.append(
            f"{_count(facts.damaged, 'stretch', 'stretches')} of the log could not be read "
            f"({facts.damaged_bytes:,} bytes; the first in {file} at offset {offset:,}: {reason})."
        )
    if facts.torn_bytes:
        said.append(
            f"{facts.torn_bytes:,} bytes at the end of segments were not written whole (yet)."
        )
    return " ".join([*said, *unknown])


def _of_unknown(facts: LogFacts) -> list[str]:
    """What was decided while a broker knew no policies; it is in no group's figures."""
    counted = ((facts.unknown_granted, "granted"), (facts.unknown_refused, "refused"))
    return [
        f"{_count(count, 'request')} {'was' if count == 1 else 'were'} {done} while no policies were "
        "known, and no group's figures have them."
        for count, done in counted
        if count
    ]


def amount(value: float | None, dimension: str) -> str:
    """A rate or amount without `/s`: `1,234`, `12.5`, or `1.2 MB`."""
    if value is None:
        return NOTHING
    if dimension != "bytes":
        return _short(value)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{_short(value)} {unit}"
        value /= 1000
    return f"{_short(value)} TB"


def percent(value: float | None) -> str:
    """A part of 1 as percent."""
    if value is None:
        return NOTHING
    part = value * 100
    return f"{part:.1f} %" if 0 < abs(part) < 10 or 90 < part < 100 else f"{part:.0f} %"


def times(value: float | None) -> str:
    """A multiple."""
    return NOTHING if value is None else f"{value:.2f} x"


def ratio(value: float | None) -> str:
    """A number around 1."""
    return NOTHING if value is None else f"{value:.3f}"


def span(seconds: float) -> str:
    """A length of time."""
    if seconds < 120:
        return f"{seconds:g} s" if seconds == round(seconds) else f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def moment(ms: float) -> str:
    """A date and time, UTC."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def clock(ms: float) -> str:
    """A time of day, UTC."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%H:%M:%S}"


def _short(value: float) -> str:
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"
