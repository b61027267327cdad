"""The part of the page that shows when brokers were starved: a row a group over the whole time of the log.

Law: each interval that is drawn is in the findings (`findings.STARVED_LISTED_MAX` a group), and the longest of a group is
in words beside it. Only groups with a starved broker have a row, at most `ROWS_MAX`.
"""

from collections.abc import Sequence
from html import escape
from itertools import islice
from typing import Any, Final

from rgd.analysis import figures
from rgd.analysis.findings import worst_first
from rgd.analysis.log_facts import LogFacts

#: Rows of the section; the table of groups has the others.
ROWS_MAX: Final = 50
#: How finely times are drawn.
_STEPS: Final = 1000

Finding = dict[str, Any]


def section(findings: Sequence[Finding], facts: LogFacts) -> str:
    """The section; nothing where nobody was starved."""
    starved = [finding for finding in worst_first(findings) if finding["starved"]]
    if not starved:
        return ""
    rows = "\n".join(_row(finding, facts) for finding in islice(starved, ROWS_MAX))
    more = len(starved) - ROWS_MAX
    note = f'<p class="note">{more} more groups are in the table.</p>' if more > 0 else ""
    ends = f"{figures.moment(facts.from_ms)} to {figures.moment(facts.to_ms)} UTC"
    heads = f'<th class="text">group</th><th class="text">{ends}</th><th>starved</th><th class="text">longest</th>'
    return (
        '<section aria-labelledby="when"><h2 id="when">When brokers were starved</h2><div class="scroll">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}</section>"
    )


def _row(finding: Finding, facts: LogFacts) -> str:
    name = f"{escape(finding['group'])} <small>{finding['kind']}, {finding['dimension']}</small>"
    longest = finding["starved"][0]
    words = f"{longest['broker']}, {figures.moment(longest['from_ms'])} to {figures.moment(longest['to_ms'])}"
    drawn = "".join(_interval(one["from_ms"], one["to_ms"], facts) for one in finding["starved"])
    return (
        f'<tr><th scope="row">{name}</th><td class="when"><svg viewBox="0 0 {_STEPS} 10" preserveAspectRatio="none" '
        f'aria-hidden="true">{drawn}</svg></td><td class="bad">{figures.span(finding["starved_s"])}</td>'
        f'<td class="text">{escape(words)}</td></tr>'
    )


def _interval(from_ms: int, to_ms: int, facts: LogFacts) -> str:
    """A bar, wide enough to be seen."""
    length = max(1, facts.to_ms - facts.from_ms)
    begin = (from_ms - facts.from_ms) * _STEPS // length
    width = max(2, (to_ms - from_ms) * _STEPS // length)
    return f'<rect x="{begin}" width="{width}" height="10"/>'
