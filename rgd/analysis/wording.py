"""Findings in words, for the page and the terminal alike; what the logs lack is in `log_wording`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from rgd.analysis import log_wording
from rgd.analysis.figures import NOTHING, amount, clock, moment, percent, ratio, span, times
from rgd.analysis.findings import STARVED_BELOW, Finding, worst_first
from rgd.analysis.log_facts import LogFacts
from rgd.text import count

#: A column of figures: its heading, the key under which a finding has the figure, and the text for a finding.
Column = tuple[str, str, Callable[[Finding], str]]


def rate(key: str) -> Column:
    """The column of a rate."""
    return f"{key} /s", key, lambda one: amount(one[key], one["dimension"])


def _quota(one: Finding) -> str:
    return "unlimited" if one["quota"] is None else amount(one["quota"], one["dimension"])


def _levels(one: Finding) -> str:
    """Which levels refused which part of what was refused, the largest first."""
    counts = sorted(one["refused_by"].items(), key=lambda item: -item[1])
    total = sum(count for _, count in counts)
    parts = (f"{level.replace('_', ' ')} {percent(count / total)}" for level, count in counts)
    return ", ".join(parts) or NOTHING


STARVED: Final[Column] = (
    "starved",
    "starved_s",
    lambda one: span(one["starved_s"]) if one["starved_s"] else NOTHING,
)
#: The heading of a column of words.
REFUSED_BY: Final = "refused by"
#: Sorted by how much was refused.
_REFUSED_BY: Final[Column] = REFUSED_BY, "refused", _levels
LOWEST_MEAN: Final[Column] = (
    "lowest mean ratio",
    "lowest_ratio_mean",
    lambda one: ratio(one["lowest_ratio_mean"]),
)
_JAIN: Final[Column] = "Jain", "jain_mean", lambda one: ratio(one["jain_mean"])

#: The columns of figures in the tables of groups, of tenants, and of a group's brokers and scenarios.
GROUPS: Final[tuple[Column, ...]] = (
    rate("wanted"),
    rate("admitted"),
    ("quota /s", "quota", _quota),
    ("utilisation", "utilisation", lambda one: percent(one["utilisation"])),
    ("overshoot", "overshoot_max", lambda one: times(one["overshoot_max"])),
    _JAIN,
    ("lowest ratio", "lowest_ratio", lambda one: ratio(one["lowest_ratio"])),
    (
        "rounds to fair",
        "rounds_to_fair",
        lambda one: NOTHING if one["rounds_to_fair"] is None else str(one["rounds_to_fair"]),
    ),
    STARVED,
    _REFUSED_BY,
)
TENANTS: Final[tuple[Column, ...]] = (
    rate("wanted"),
    rate("admitted"),
    ("of what it wanted", "unmet", lambda one: percent(_served(one))),
    STARVED,
    _REFUSED_BY,
)
BROKERS: Final[tuple[Column, ...]] = (
    rate("wanted"),
    rate("admitted"),
    rate("part"),
    rate("share"),
    ("ratio", "ratio", lambda one: ratio(one["ratio"])),
    STARVED,
)
SCENARIOS: Final[tuple[Column, ...]] = (
    ("quota /s", "quota", _quota),
    rate("admitted"),
    (
        "change",
        "change",
        lambda one: NOTHING if one["change"] is None else f"{one['change'] * 100:+.1f} %",
    ),
    rate("unmet"),
    _JAIN,
    LOWEST_MEAN,
    STARVED,
)
#: What names a row of groups, before its figures.
NAMES: Final = ("group", "kind", "dimension")
#: Headings of the table of groups; `table_row` gives the cells.
COLUMNS: Final = (*NAMES, *(heading for heading, _, _ in GROUPS))

#: Groups that the sentences name; the table has them all.
NAMED_MAX: Final = 3

#: Mean of Jain's index from which a group is called fair.
FAIR_JAIN: Final = 0.95


def table_row(finding: Finding) -> tuple[str, ...]:
    """The cells of one group, kind and dimension."""
    figures = (text(finding) for _, _, text in GROUPS)
    return *(finding[name] for name in NAMES), *figures


def groups_of(tenant: Finding) -> str:
    """The groups of a tenant, and with whom it shares them."""
    shared = tenant["shared_with"]
    return log_wording.names(tenant["groups"]) + (
        f" (shared with {log_wording.names(shared)})" if shared else ""
    )


def step_row(step: Finding, dimension: str) -> tuple[str, str, str, str]:
    """The cells of a step: when, its cause, what changed, and when it was fair again."""
    rounds = step["rounds"]
    again = (
        NOTHING if rounds is None else f"after {count(rounds, 'round')}" if rounds else "at once"
    )
    return moment(step["at_ms"]), step["cause"], _what_changed(step, dimension), again


def _what_changed(step: Finding, dimension: str) -> str:
    cause = step["cause"]
    if cause == "membership":
        came_and_went = ((step[key], key) for key in ("joined", "left"))
        return ", ".join(f"{log_wording.names(who)} {what}" for who, what in came_and_went if who)
    if cause == "weight":
        return "a broker's weight"
    before, after = (
        value
        if isinstance(value, str)
        else "unlimited"
        if value is None
        else f"{amount(value, dimension)}/s"
        for value in (step["before"], step["after"])
    )
    return (
        f"from {before} to {after}" if before != after else f"moved between brokers, {after} in all"
    )


def sentences(
    findings: Sequence[Finding], facts: LogFacts, tenants: Sequence[Finding] = ()
) -> list[str]:
    """What was found, in plain words: the verdict, the log, the groups, the tenants, what is missing."""
    recovered = any(finding["recovered"] for finding in findings)
    return [
        *log_wording.of_wrong_times(facts),
        *_verdict(findings),
        _of_log(findings, facts),
        *log_wording.of_clocks(facts),
        *_of_groups(findings),
        *_of_tenants(tenants),
        *_of_levels(findings),
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


def _served(one: Finding) -> float | None:
    """Which part of its demand was admitted."""
    return 1 - one["unmet"] / one["wanted"] if one["wanted"] else None


def _of_tenants(tenants: Sequence[Finding]) -> list[str]:
    """Which tenant got least of what it wanted."""
    short = [one for one in tenants if one["unmet"] > 0]
    if not short:
        return []
    worst = min(short, key=lambda one: _served(one) or 0.0)
    dimension = worst["dimension"]
    return [
        f"The tenant {worst['tenant']} got least of what it wanted ({worst['kind']}, {dimension}): "
        f"{amount(worst['admitted'], dimension)}/s of {amount(worst['wanted'], dimension)}/s."
    ]


def _of_levels(findings: Sequence[Finding]) -> list[str]:
    """Which limits refused which part of all that was refused."""
    by: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in findings:
        by[one["kind"], one["dimension"]].update(one["refused_by"])
    parts = [
        f"{_levels({'refused_by': counts})} ({kind}, {dimension})"
        for (kind, dimension), counts in by.items()
        if counts
    ]
    return [f"Refused by level, retries too: {'; '.join(parts)}."] if parts else []
