"""The same groups in another time range, beside those of the report: `rgd report --compare`."""

from collections.abc import Sequence
from typing import Final

from rgd.analysis import wording
from rgd.analysis.figures import amount, moment
from rgd.analysis.findings import Finding

#: What is shown of both ranges.
_PAIRS: Final = (*map(wording.rate, ("wanted", "admitted")), wording.LOWEST_MEAN, wording.STARVED)
#: Headings of the table; `rows` gives the cells. The first three are words.
COLUMNS: Final = (*wording.NAMES, *(name for heading, _, _ in _PAIRS for name in (heading, "then")))

#: What is kept of a finding about the other range.
_KEYS: Final = (
    *("wanted", "admitted", "quota", "unmet", "utilisation", "jain_mean", "lowest_ratio_mean"),
    *("starved_s", "from_ms", "to_ms"),
)

#: Groups that the sentences name; the table has them all.
NAMED_MAX: Final = 3


def note(findings: Sequence[Finding], then: Sequence[Finding]) -> None:
    """Put what was found in the other range beside each finding; None where the group was not in it."""
    by = {_of(one): one for one in then}
    for finding in findings:
        other = by.get(_of(finding))
        finding["compared"] = None if other is None else {key: other[key] for key in _KEYS}


def rows(findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    """The cells of the table, the largest change first; none if nothing was compared."""
    return [
        (*_of(one), *(text(of) for _, _, text in _PAIRS for of in (one, one | one["compared"])))
        for one in _by_change(findings)
    ]


def sentences(findings: Sequence[Finding]) -> list[str]:
    """The largest changes in plain words; none if nothing was compared."""
    changed = _by_change(findings)
    if not changed:
        return []
    begin = min(one["compared"]["from_ms"] for one in changed)
    end = max(one["compared"]["to_ms"] for one in changed)
    lines = [
        f"{one['group']} ({one['kind']}, {one['dimension']}) wanted {_changed(one, 'wanted')} and got "
        f"{_changed(one, 'admitted')}"
        for one in changed[:NAMED_MAX]
    ]
    return [f"Compared with {moment(begin)} to {moment(end)} UTC, {'; '.join(lines)}."]


def _of(finding: Finding) -> tuple[str, str, str]:
    return finding["group"], finding["kind"], finding["dimension"]


def _by_change(findings: Sequence[Finding]) -> list[Finding]:
    """Those in both ranges; first who is starved longer, then by how much more of what was wanted is unmet."""

    def order(one: Finding) -> tuple[float, float]:
        then = one["compared"]
        parts = [of["unmet"] / of["wanted"] if of["wanted"] else 0.0 for of in (one, then)]
        return (then["starved_s"] - one["starved_s"], -abs(parts[0] - parts[1]))

    return sorted((one for one in findings if one.get("compared")), key=order)


def _changed(finding: Finding, key: str) -> str:
    now, then = finding[key], finding["compared"][key]
    if not then:
        return f"{amount(now, finding['dimension'])}/s (then nothing)"
    return f"{abs(now / then - 1) * 100:.0f} % {'more' if now >= then else 'less'}"
