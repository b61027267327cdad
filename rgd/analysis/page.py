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
from rgd.analysis.findings import worst_first
from rgd.analysis.log_facts import SILENCES_LISTED_MAX, LogFacts
from rgd.analysis.windows import GroupWindows
from rgd.version import __version__

Finding = dict[str, Any]

#: Columns of the table of groups whose cells are words.
_TEXT_COLUMNS: Final = 3

_BROKER_COLUMNS: Final = (
    "broker",
    "wanted /s",
    "admitted /s",
    "part /s",
    "share /s",
    "ratio",
    "starved",
)


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
        windows, fairness = tables.read(table)
        chart = draw(
            windows,
            fairness,
            window_ms=facts.window_ms,
            steps_ms=[step["at_ms"] for step in finding["steps"]],
            coloured=_coloured(windows, facts),
        )
        return cls(finding, chart, heat.cells_of(windows.start_ms, fairness.lowest, facts), file)

    @property
    def anchor(self) -> str:
        """Names it on its page."""
        return _anchor(self.finding)


def render(findings: Sequence[Finding], facts: LogFacts, sections: Sequence[Section]) -> str:
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
            f"<li>{escape(sentence)}</li>" for sentence in wording.sentences(findings, facts)
        ),
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


def _coloured(windows: GroupWindows, facts: LogFacts) -> list[str]:
    """The coloured brokers: the same on the whole page if there are enough colours, else those with the most demand here."""
    if len(facts.brokers) <= COLOURS:
        return list(facts.brokers)
    rates = next(iter(windows.rates.values()))
    wanted = (rates.wanted * windows.seconds[:, None]).sum(axis=0)
    largest = np.argsort(-wanted, kind="stable")[:COLOURS]
    return [windows.brokers[index] for index in sorted(largest.tolist())]


def _groups_table(findings: Sequence[Finding], links: Mapping[str, str]) -> str:
    heads = "".join(
        f'<th scope="col"{_text_class(index)}>{escape(name)}</th>'
        for index, name in enumerate(wording.COLUMNS)
    )
    rows = []
    for finding in findings:
        cells = [escape(cell) for cell in wording.table_row(finding)]
        if link := links.get(_anchor(finding)):
            cells[0] = f'<a href="{link}">{cells[0]}</a>'
        marks = [""] * len(cells)
        # One window may be the delay of one exchange, so the lowest ratio by itself is not marked.
        marks[wording.COLUMNS.index("starved")] = _mark(is_starved=bool(finding["starved_s"]))
        marks[wording.COLUMNS.index("Jain")] = _mark(
            is_fair=finding["jain_mean"] is None or finding["jain_mean"] >= wording.FAIR_JAIN
        )
        # Sorted by the figures, not by how they are shown; nothing where there is none.
        values = ["" if finding[key] is None else f"{finding[key]:g}" for key in wording.FIGURES]
        sorts = [""] * _TEXT_COLUMNS + [f' data-v="{value}"' for value in values]
        body = "".join(
            f"<td{_text_class(index) or marks[index]}{sorts[index]}>{cell}</td>"
            for index, cell in enumerate(cells)
            if index
        )
        rows.append(f'<tr><th scope="row">{cells[0]}</th>{body}</tr>')
    return (
        f'<table id="groups" data-words="{_TEXT_COLUMNS}"><thead><tr>{heads}</tr></thead><tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>"
    )


def _asked(title: str, anchor: str, asked: ModuleType, findings: Sequence[Finding]) -> str:
    """The section of `compared` or `what_if`, in words and as a table; nothing if it was not asked."""
    rows = asked.rows(findings)
    if not rows:
        return ""
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in asked.sentences(findings))
    return (
        f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{title}</h2>'
        f'<ul class="found">{said}</ul>{_table(asked.COLUMNS, rows, words=_TEXT_COLUMNS)}</section>'
    )


def _scenarios_of(finding: Finding) -> str:
    if not finding["what_if"] or finding["quota"] is None:
        return ""
    table = _table(what_if.GROUP_COLUMNS, what_if.rows_of(finding), words=1)
    return f"<details><summary>What if, for {escape(finding['group'])}</summary>{table}</details>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: int) -> str:
    """A table whose first column names the row, and whose first `words` columns are text."""
    heads = "".join(
        f'<th scope="col"{_text_class(index, words)}>{escape(name)}</th>'
        for index, name in enumerate(columns)
    )
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(
            f"<td{_text_class(index, words)}>{escape(cell)}</td>"
            for index, cell in enumerate(row)
            if index
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<div class="scroll"><table><thead><tr>'
        f"{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


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
<details><summary>Brokers of {name} in figures</summary><div class="scroll">{_brokers_table(finding)}</div></details>
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
        keys.append('<b class="step"></b>step in what is fair')
    if chart.has_recovered:
        keys.append('<i class="hatch"></i>records missing, known from totals')
    return '<ul class="legend">' + "".join(f"<li>{key}</li>" for key in keys) + "</ul>"


def _brokers_table(finding: Finding) -> str:
    dimension = finding["dimension"]
    heads = "".join(
        f'<th scope="col"{_text_class(index, words=1)}>{name}</th>'
        for index, name in enumerate(_BROKER_COLUMNS)
    )
    rows = []
    for one in finding["brokers"]:
        amounts = "".join(
            f"<td>{escape(figures.amount(one[key], dimension))}</td>"
            for key in ("wanted", "admitted", "part", "share")
        )
        starved = figures.span(one["starved_s"]) if one["starved_s"] else figures.NOTHING
        rows.append(
            f'<tr><th scope="row">{escape(one["broker"])}</th>{amounts}'
            f"<td>{figures.ratio(one['ratio'])}</td>"
            f"<td{_mark(is_starved=bool(one['starved_s']))}>{starved}</td></tr>"
        )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


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
    return _table(("broker", "what", "from (UTC)", "to (UTC)"), cells, words=2)


def _anchor(finding: Finding) -> str:
    """An identifier for a section; groups' names may hold what identifiers may not."""
    group = "".join(
        letter if letter.isascii() and letter.isalnum() else f"-{ord(letter):x}-"
        for letter in finding["group"]
    )
    return f"{group}-{finding['kind']}-{finding['dimension']}"


def _text_class(index: int, words: int = _TEXT_COLUMNS) -> str:
    return ' class="text"' if index < words else ""


def _mark(*, is_starved: bool = False, is_fair: bool = True) -> str:
    """Red is for starvation only."""
    return ' class="bad"' if is_starved else "" if is_fair else ' class="poor"'
