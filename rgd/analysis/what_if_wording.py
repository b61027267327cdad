"""What scenarios would have changed, in tables and words, beside what was logged and the model's own error."""

from collections.abc import Iterator, Sequence
from typing import Final

from rgd.analysis.figures import NOTHING, amount, percent, ratio, span
from rgd.analysis.findings import Finding
from rgd.analysis.scenarios import AS_LOGGED
from rgd.analysis.tenants import rate_of
from rgd.text import count

LOGGED: Final = "the log"

#: Headings of the table of scenarios; `rows` gives the cells. The first three are words.
COLUMNS: Final = (
    *("scenario", "kind", "dimension", "admitted /s", "of what was wanted", "lowest mean ratio"),
    *("starved groups", "starved"),
)

#: What the model cannot know.
CAVEAT: Final = "Scenarios take demand as it was logged: callers that would have adapted to other limits are not modelled."


def rows(findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    """The cells of the table of scenarios: sums over all groups with a quota; none without a scenario."""
    table = []
    for kind, dimension in dict.fromkeys((one["kind"], one["dimension"]) for one in findings):
        limited = [
            one
            for one in findings
            if (one["kind"], one["dimension"]) == (kind, dimension)
            and one["quota"] is not None
            and one["what_if"]
        ]
        if limited:
            wanted = rate_of(limited, "wanted")
            table += [
                (name, kind, dimension, *_sums(some, wanted, dimension))
                for name, some in _by_scenario(limited)
            ]
    return table


def sentences(findings: Sequence[Finding]) -> list[str]:
    """What was asked and found, in plain words; none without a scenario."""
    limited = [one for one in findings if one["what_if"] and one["quota"] is not None]
    if not limited:
        return []
    lines = [_of_scenario(name, some) for name, some in _by_scenario(limited) if name != LOGGED]
    return [*lines, CAVEAT]


def _by_scenario(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """What was logged, then each scenario, of all groups."""
    yield LOGGED, list(findings)
    for at, one in enumerate(findings[0]["what_if"]):
        yield (one["scenario"], [{**finding, **finding["what_if"][at]} for finding in findings])


def _sums(findings: Sequence[Finding], wanted: float, dimension: str) -> tuple[str, ...]:
    admitted = rate_of(findings, "admitted")
    ratios = [one["lowest_ratio_mean"] for one in findings if one["lowest_ratio_mean"] is not None]
    starved = [one["starved_s"] for one in findings if one["starved_s"]]
    return (
        amount(admitted, dimension),
        percent(admitted / wanted) if wanted else NOTHING,
        ratio(min(ratios, default=None)),
        str(len(starved)),
        span(sum(starved)) if starved else NOTHING,
    )


def _of_scenario(name: str, findings: Sequence[Finding]) -> str:
    if name == AS_LOGGED.text:
        worst = max(findings, key=lambda one: abs(one["change"] or 0.0))
        return (
            "Replayed as logged, the model admits what the log has to within "
            f"{percent(abs(worst['change'] or 0.0))} in every group (furthest off: {worst['group']}, "
            f"{worst['kind']}, {worst['dimension']}). Trust the scenarios no further than that."
        )
    starved = sorted(
        (one for one in findings if one["starved_s"]), key=lambda one: -one["starved_s"]
    )
    if not starved:
        return f"With {name} no broker would have been starved."
    worst = starved[0]
    broker = max(worst["brokers"], key=lambda one: one["starved_s"])
    return (
        f"With {name} brokers of {count(len(starved), 'group')} would have been starved, longest "
        f"{broker['broker']} in {worst['group']} ({worst['kind']}, {worst['dimension']}) for "
        f"{span(broker['starved_s'])}."
    )
