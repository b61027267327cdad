"""The page: one self-contained HTML file.

Law: it has no external address, script, font or picture. Every name from the log is escaped. Every plot
has a title, a description, a legend and a table of its brokers, so that no information is in colours
alone. `page.html` is the template, `group.html` that of a group's own file, `page.css` the style of both, for light and for
dark, and `page.js` sorts and searches the table of groups, which is whole without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from types import ModuleType
from typing import Any, Final

import numpy as np

from rgd.analysis import compared, figures, heat, tables, what_if, wording
from rgd.analysis.charts import COLOURS, Chart, draw
from rgd.analysis.chunks import Floats
from rgd.analysis.clocks import ERRORS_LISTED_MAX
from rgd.analysis.findings import Finding, worst_first
from rgd.analysis.log_facts import SILENCES_LISTED_MAX, LogFacts
from rgd.analysis.page_tables import Cell, figures_of, headings, table
from rgd.version import __version__

#: Columns of the table of groups whose cells are words.
_TEXT_COLUMNS: Final = 3

#: Tenants (with kind and dimension) at once and on a click; `summary.json` has all.
TENANTS_SHOWN: Final = 20
TENANTS_LISTED_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Section:
    """One group, kind and dimension, with its plots."""

    finding: Finding
    chart: Chart
    #: Of `heat.cells_of`.
    cells: Floats
    #: The file of its own that it is in, beside the page; none: it is on the page.
    file: str | None = None

    @classmethod
    def of(
        cls, finding: Finding, table: Any, facts: LogFacts, file: str | None = None
    ) -> "Section":
        """Draw the windows (a `pyarrow.Table` of `schema.WINDOWS`)."""
        plotted = tables.read(table)
        chart = draw(
            plotted,
            window_ms=facts.window_ms,
            steps=[(step["at_ms"], step["cause"]) for step in finding["steps"]],
            coloured=_coloured(plotted, facts),
        )
        return cls(finding, chart, heat.cells_of(plotted, facts), file)

    @property
    def anchor(self) -> str:
        """Names it on its page."""
        return _anchor(self.finding)


def render(
    findings: Sequence[Finding],
    facts: LogFacts,
    sections: Sequence[Section],
    tenants: Sequence[Finding] = (),
) -> str:
    """The whole page, but for sections with files of their own."""
    when = f"{figures.moment(facts.from_ms)} to {figures.moment(facts.to_ms)} UTC"
    links = {section.anchor: section.file or f"#{section.anchor}" for section in sections}
    left_out = len(findings) - len(sections)
    return Template(_text_of("page.html")).substitute(
        style=_text_of("page.css"),
        when=when,
        table=_groups_table(worst_first(findings), links),
        columns="a dash is what cannot be said."
        + (f" {left_out} groups that were short of less are not plotted." if left_out else ""),
        found="\n".join(
            f"<li>{escape(sentence)}</li>"
            for sentence in wording.sentences(findings, facts, tenants)
        ),
        tenants=_tenants(tenants),
        heat=heat.section([(section.finding, section.cells) for section in sections], facts),
        compared=_asked("Then and now", "compared", compared, findings),
        what_if=_asked("What if", "what-if", what_if, findings),
        sections="\n".join(_section(section) for section in sections if section.file is None),
        log=_log(facts),
        script=_text_of("page.js"),
        version=escape(__version__),
    )


def render_group(section: Section, facts: LogFacts) -> str:
    """The page of one section, in its own file."""
    return Template(_text_of("group.html")).substitute(
        style=_text_of("page.css"),
        name=escape(section.finding["group"]),
        when=f"{figures.moment(facts.from_ms)} to {figures.moment(facts.to_ms)} UTC",
        section=_section(section),
        version=escape(__version__),
    )


def _text_of(file: str) -> str:
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


def _coloured(plotted: tables.Plotted, facts: LogFacts) -> list[str]:
    """The coloured brokers: the same on the whole page if there are enough colours, else those with the most demand here."""
    if len(facts.brokers) <= COLOURS:
        return list(facts.brokers)
    wanted = (plotted.wanted * plotted.seconds[:, None]).sum(axis=0)
    largest = np.argsort(-wanted, kind="stable")[:COLOURS]
    return [plotted.brokers[index] for index in sorted(largest.tolist())]


def _groups_table(findings: Sequence[Finding], links: Mapping[str, str]) -> str:
    rows = [
        [_linked(one, links), one["kind"], one["dimension"], *figures_of(wording.GROUPS, one)]
        for one in findings
    ]
    return table(wording.COLUMNS, rows, words=_TEXT_COLUMNS, name="groups")


def _linked(finding: Finding, links: Mapping[str, str]) -> Cell:
    """The group's name, which leads to its plots if there are any."""
    name, link = finding["group"], links.get(_anchor(finding))
    return Cell(name, html=f'<a href="{link}">{escape(name)}</a>' if link else "")


def _tenants(tenants: Sequence[Finding]) -> str:
    """The section of tenants, worst first; nothing if the log names none."""
    rows = [
        [
            one["tenant"],
            one["kind"],
            one["dimension"],
            wording.groups_of(one),
            *figures_of(wording.TENANTS, one),
        ]
        for one in worst_first(tenants)[:TENANTS_LISTED_MAX]
    ]
    if not rows:
        return ""
    columns = headings("tenant, kind, dimension, groups", wording.TENANTS)
    shown, more = (
        table(columns, some, words=4) for some in (rows[:TENANTS_SHOWN], rows[TENANTS_SHOWN:])
    )
    if len(rows) > TENANTS_SHOWN:
        shown += (
            f"<details><summary>{len(rows) - TENANTS_SHOWN} more tenants</summary>{more}</details>"
        )
    return (
        f'<section aria-labelledby="tenants"><h2 id="tenants">Tenants</h2>{shown}'
        '<p class="note">A tenant has the figures of its groups. Of a group of several tenants the log has only the total.</p></section>'
    )


def _steps_of(finding: Finding) -> str:
    """When what is fair changed, and why."""
    if not finding["steps"]:
        return ""
    rows = [wording.step_row(step, finding["dimension"]) for step in finding["steps"]]
    found = table(("time (UTC)", "cause", "what changed", "fair again"), rows, words=4)
    return f"<details open><summary>Steps of {escape(finding['group'])}</summary>{found}</details>"


def _brokers_of(finding: Finding) -> str:
    rows = [
        [one["broker"], *figures_of(wording.BROKERS, one | {"dimension": finding["dimension"]})]
        for one in finding["brokers"]
    ]
    found = table(headings("broker", wording.BROKERS), rows, words=1)
    return f"<details><summary>Brokers of {escape(finding['group'])} in figures</summary>{found}</details>"


def _asked(title: str, anchor: str, asked: ModuleType, findings: Sequence[Finding]) -> str:
    """The section of `compared` or `what_if`, in words and as a table; nothing if it was not asked."""
    rows = asked.rows(findings)
    if not rows:
        return ""
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in asked.sentences(findings))
    return (
        f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{title}</h2>'
        f'<ul class="found">{said}</ul>{table(asked.COLUMNS, rows, words=_TEXT_COLUMNS)}</section>'
    )


def _scenarios_of(finding: Finding) -> str:
    """What the log has of a group, and what each scenario would have made of it."""
    if not finding["what_if"] or finding["quota"] is None:
        return ""
    entries = [{"scenario": what_if.LOGGED, "change": None}, *finding["what_if"]]
    rows = [[one["scenario"], *figures_of(wording.SCENARIOS, finding | one)] for one in entries]
    found = table(headings("scenario", wording.SCENARIOS), rows, words=1)
    return f"<details><summary>What if, for {escape(finding['group'])}</summary>{found}</details>"


def _section(section: Section) -> str:
    finding, chart = section.finding, section.chart
    name, what = escape(finding["group"]), escape(f"{finding['kind']}, {finding['dimension']}")
    anchor = section.anchor
    label = (
        f'role="img" aria-labelledby="{anchor}-title {anchor}-desc"><title id="{anchor}-title">'
        f'{name}, {what} over time</title><desc id="{anchor}-desc">{escape(_description(finding))}</desc>'
    )
    head, _, rest = chart.svg.partition(">")
    return f"""<section aria-labelledby="{anchor}">
<h2 id="{anchor}">{name} <small>{what}</small></h2>
<figure>
{_legend(chart, has_quota=finding["quota"] is not None)}
<div class="scroll">{head} {label}{rest}</div>
</figure>
{_steps_of(finding)}
{_brokers_of(finding)}
{_scenarios_of(finding)}
</section>"""


def _description(finding: Finding) -> str:
    """A description of the plots for screen readers."""
    dimension = finding["dimension"]
    quota = finding["quota"]
    return (
        f"{len(finding['brokers'])} brokers together wanted "
        f"{figures.amount(finding['wanted'], dimension)} {dimension} a second on average and were "
        f"admitted {figures.amount(finding['admitted'], dimension)}; the quota was "
        f"{'unlimited' if quota is None else figures.amount(quota, dimension)}. Jain's index was "
        f"{figures.ratio(finding['jain_mean'])} on average, the lowest ratio of admitted to max-min "
        f"part {figures.ratio(finding['lowest_ratio'])}. The table below has each broker."
    )


def _legend(chart: Chart, *, has_quota: bool) -> str:
    """The meaning of colours and lines."""
    keys = [
        f'<i style="background:var(--broker-{index})"></i>{escape(broker)}'
        for index, broker in chart.colours
    ]
    if chart.rest:
        keys.append(f'<i style="background:var(--rest)"></i>{chart.rest} other brokers')
    keys.append("<b></b>wanted by all")
    if has_quota:
        keys.append('<b class="dashed"></b>quota')
    if chart.has_steps:
        keys.append('<b class="step"></b>step: what is fair changed')
    if chart.has_recovered:
        keys.append('<i class="hatch"></i>records missing, known from totals')
    return '<ul class="legend">' + "".join(f"<li>{key}</li>" for key in keys) + "</ul>"


def _log(facts: LogFacts) -> str:
    """The extent of the logs, and every unreadable stretch."""
    known = {
        "brokers": ", ".join(facts.brokers),
        "segments": f"{facts.segments:,}",
        "records": f"{facts.records:,}",
        "round": figures.span(round(facts.round_ms / 1000, 3)),
        "window": figures.span(facts.window_ms / 1000),
        "missing records": f"{facts.missing:,}",
        "damaged stretches": f"{facts.damaged:,} ({facts.damaged_bytes:,} bytes)",
        "torn at the end": f"{facts.torn_bytes:,} bytes",
        "entries of others": f"{facts.foreign:,}",
        "ends without a closing record": f"{len(facts.killed):,} killed, "
        f"{len(facts.open):,} still running or killed",
    }
    items = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in known.items())
    damages = "".join(
        f"<li><code>{escape(file)}</code> at offset {offset:,}: {escape(reason)}</li>"
        for file, offset, reason in facts.damages
    )
    return f"<dl>{items}</dl>{_absences(facts)}" + (f"<ul>{damages}</ul>" if damages else "")


def _absences(facts: LogFacts) -> str:
    """A table of clocks that were off, silences and kills, in the order of time."""
    rows = [
        (one.from_ms, one.to_ms, one.broker, f"clock {figures.ahead(one.ahead_ms)}, corrected")
        for one in facts.clocks.errors[:ERRORS_LISTED_MAX]
    ]
    rows += [
        (one.from_ms, one.to_ms, one.broker, "silent: not judged")
        for one in facts.silences[:SILENCES_LISTED_MAX]
    ]
    lost = f"ended without a closing record: up to {figures.span(facts.round_ms / 1000)} missing"
    rows += [(end.at_ms, end.at_ms, end.broker, lost) for end in facts.killed]
    if not rows:
        return ""
    cells = [
        (broker, what, figures.moment(from_ms), figures.moment(to_ms))
        for from_ms, to_ms, broker, what in sorted(rows)
    ]
    return table(("broker", "what", "from (UTC)", "to (UTC)"), cells, words=2)


def _anchor(finding: Finding) -> str:
    """An identifier for a section; groups' names may hold what identifiers may not."""
    group = "".join(
        letter if letter.isascii() and letter.isalnum() else f"-{ord(letter):x}-"
        for letter in finding["group"]
    )
    return f"{group}-{finding['kind']}-{finding['dimension']}"
