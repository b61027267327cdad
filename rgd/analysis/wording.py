"""Findings in words, for the page and the terminal alike; what the logs lack is in `log_wording`."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from rgd.analysis import log_wording
from rgd.analysis.figures import (
    NOTHING,
    amount,
    clock,
    count,
    moment,
    percent,
    ratio,
    span,
    times,
)
from rgd.analysis.findings import STARVED_BELOW, worst_first
from rgd.analysis.log_facts import LogFacts

Finding = dict[str, Any]

#: The columns of the table of groups behind the first three, which are words: heading, key of the finding, and the text for it.
_FIGURES: Final[tuple[tuple[str, str, Callable[[Any, str], str]], ...]] = (
    ("wanted /s", "wanted", amount),
    ("admitted /s", "admitted", amount),
    ("quota /s", "quota", lambda value, of: "unlimited" if value is None else amount(value, of)),
    ("utilisation", "utilisation", lambda value, _: percent(value)),
    ("overshoot", "overshoot_max", lambda value, _: times(value)),
    ("Jain", "jain_mean", lambda value, _: ratio(value)),
    ("lowest ratio", "lowest_ratio", lambda value, _: ratio(value)),
    ("rounds to fair", "rounds_to_fair", lambda value, _: NOTHING if value is None else str(value)),
    ("starved", "starved_s", lambda value, _: span(value) if value else NOTHING),
)
#: Headings; `table_row` gives the cells, and the findings have the figures under these keys.
COLUMNS: Final = ("group", "kind", "dimension", *(heading for heading, _, _ in _FIGURES))
FIGURES: Final = tuple(key for _, key, _ in _FIGURES)

#: Groups that the sentences name; the table has them all.
NAMED_MAX: Final = 3

#: Mean of Jain's index from which a group is called fair.
FAIR_JAIN: Final = 0.95


def table_row(finding: Finding) -> tuple[str, ...]:
    """The cells of one group, kind and dimension."""
    dimension = finding["dimension"]
    figures = (text(finding[key], dimension) for _, key, text in _FIGURES)
    return finding["group"], finding["kind"], dimension, *figures


def sentences(findings: Sequence[Finding], facts: LogFacts) -> list[str]:
    """What was found, in plain words: the verdict, the log, the groups, what is missing."""
    recovered = any(finding["recovered"] for finding in findings)
    return [
        *_verdict(findings),
        _of_log(findings, facts),
        *log_wording.of_clocks(facts),
        *_of_groups(findings),
        *log_wording.of_silences(facts),
        *log_wording.of_gaps(facts, recovered=recovered),
    ]


def _verdict(findings: Sequence[Finding]) -> list[str]:
    """Whether brokers were starved; nothing where no group has a quota."""
    limited = [finding for finding in findings if finding["quota"] is not None]
    if not limited:
        return []
    groups = count(len({finding["group"] for finding in limited}), "group")
    worst = worst_first(finding for finding in limited if finding["starved_s"])
    names = list(dict.fromkeys(finding["group"] for finding in worst))
    if not names:
        return [f"No broker was starved in any of {groups} with a quota."]
    return [
        f"Brokers were starved in {len(names):,} of {groups} with a quota: "
        f"{log_wording.names(names)}."
    ]


def _of_log(findings: Sequence[Finding], facts: LogFacts) -> str:
    groups = len({finding["group"] for finding in findings})
    return (
        f"{count(len(facts.brokers), 'broker')} logged {count(facts.records, 'round')} of "
        f"{count(groups, 'group')} between {moment(facts.from_ms)} and {moment(facts.to_ms)} UTC "
        f"({span((facts.to_ms - facts.from_ms) / 1000)}), looked at in windows of "
        f"{span(facts.window_ms / 1000)}."
    )


def _of_groups(findings: Sequence[Finding]) -> list[str]:
    limited = [finding for finding in findings if finding["quota"] is not None]
    if not limited:
        return ["No group has a quota, so everything that was wanted was to be admitted."]
    short = worst_first(finding for finding in limited if finding["unmet"] > 0)
    if not short:
        return ["Every group was given all that it wanted."]
    lines = [_of_group(finding) for finding in short[:NAMED_MAX]]
    if len(short) > NAMED_MAX:
        lines.append(f"{len(short) - NAMED_MAX} more got less than they wanted: see the table.")
    return lines


def _of_group(finding: Finding) -> str:
    dimension = finding["dimension"]
    sentence = (
        f"{finding['group']} ({finding['kind']}, {dimension}) wanted "
        f"{amount(finding['wanted'], dimension)}/s of a quota of "
        f"{amount(finding['quota'], dimension)}/s and got {amount(finding['admitted'], dimension)}/s, "
        f"{percent(finding['utilisation'])} of what the quota had room for."
    )
    jain = finding["jain_mean"]
    if jain is None:
        return sentence
    sentence += f" It was split {_how_fairly(finding)} (Jain's index {ratio(jain)} of 1 on average)"
    if finding["lowest_ratio"] is not None:
        sentence += (
            f"; the least that a broker got was {percent(finding['lowest_ratio'])} of its max-min "
            f"part ({finding['lowest_ratio_broker']} at {clock(finding['lowest_ratio_at_ms'])} UTC)"
        )
    return f"{sentence}.{_of_starved(finding)}"


def _how_fairly(finding: Finding) -> str:
    if finding["jain_mean"] < FAIR_JAIN:
        return "unfairly on the whole"
    return "fairly among most brokers" if finding["starved"] else "fairly on the whole"


def _of_starved(finding: Finding) -> str:
    if not finding["starved"]:
        return ""
    worst = finding["starved"][0]
    intervals = finding["starved_intervals"]
    return (
        f" Brokers were starved (below {percent(STARVED_BELOW)} of their part) "
        f"{count(intervals, 'time')}, longest {worst['broker']} for "
        f"{span((worst['to_ms'] - worst['from_ms']) / 1000)} from {clock(worst['from_ms'])} UTC."
    )
