"""The page: one self-contained HTML file.

Law: it has no external address, script, font or picture. The templates escape every name from the log, because only drawings
and links are marked as HTML. Every plot has a title, a description, a legend and a table of its brokers, so that no information is
in colours alone. In `templates`, `page.html` is the page, `group.html` a group's own file, `layout.html` and `macros.html` are what
both have, `page.css` is their style, for light and for dark, and `page.js` sorts and searches the table of groups, which is whole
without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rgd.analysis import compared, figures, heat, what_if_wording, window_tables, wording
from rgd.analysis.charts import COLOURS, Chart, draw
from rgd.analysis.clocks import ERRORS_LISTED_MAX
from rgd.analysis.findings import Finding, worst_first
from rgd.analysis.log_facts import SILENCES_LISTED_MAX, LogFacts
from rgd.analysis.page_tables import Table
from rgd.analysis.row_columns import Floats
from rgd.analysis.wording import NAMES
from rgd.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

#: Tenants (with kind and dimension) at once and on a click; `summary.json` has all.
TENANTS_SHOWN: Final = 20
TENANTS_LISTED_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Section:
    """One group, kind and dimension, with its plots."""

    finding: Finding
    #: None: it is in the file already.
    chart: Chart | None
    #: Of `heat.cells_of`.
    cells: Floats
    #: The file of its own that it is in, beside the page; none: it is on the page.
    file: str | None = None

    @classmethod
    def of(
        cls, finding: Finding, table: Any, facts: LogFacts, file: str | None = None
    ) -> "Section":
        """Draw the windows (a `pyarrow.Table` of `schema.WINDOWS`)."""
        plotted = window_tables.read(table)
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

    @property
    def tables(self) -> list[Table]:
        """When what is fair changed, and why; the brokers; what each scenario would have made of it."""
        finding, group = self.finding, self.finding["group"]
        dimension = {"dimension": finding["dimension"]}
        steps = [wording.step_row(step, finding["dimension"]) for step in finding["steps"]]
        heads = ("time (UTC)", "cause", "what changed", "fair again")
        brokers = [([one["broker"]], one | dimension) for one in finding["brokers"]]
        entries = [{"scenario": what_if_wording.LOGGED, "change": None}, *finding["what_if"]]
        asked = finding["what_if"] and finding["quota"] is not None
        scenarios = [([one["scenario"]], finding | one) for one in entries if asked]
        return [
            Table(heads, steps, 4, f"Steps of {group}", is_open=True),
            Table.of(["broker"], wording.BROKERS, brokers, f"Brokers of {group} in figures"),
            Table.of(["scenario"], wording.SCENARIOS, scenarios, f"What if, for {group}"),
        ]


def render(
    findings: Sequence[Finding],
    facts: LogFacts,
    sections: Sequence[Section],
    tenants: Sequence[Finding] = (),
) -> str:
    """The whole page, but for sections with files of their own."""
    listed = worst_first(tenants)[:TENANTS_LISTED_MAX]
    drawn = [(section.finding, section.cells) for section in sections]
    return _rendered(
        "page.html",
        facts,
        sentences=wording.sentences(findings, facts, tenants),
        groups=_groups_table(worst_first(findings), sections),
        left_out=len(findings) - len(sections),
        tenants=[_tenants(listed[:TENANTS_SHOWN]), _tenants(listed[TENANTS_SHOWN:])],
        heat=heat,
        unfair=heat.rows(drawn, facts),
        asked=[
            (
                title,
                anchor,
                asked.sentences(findings),
                Table(asked.COLUMNS, asked.rows(findings), len(NAMES)),
            )
            for title, anchor, asked in (
                ("Then and now", "compared", compared),
                ("What if", "what-if", what_if_wording),
            )
        ],
        sections=sections,
        absences=_absences(facts),
    )


def render_group(section: Section, facts: LogFacts) -> str:
    """The page of one section, in its own file."""
    return _rendered("group.html", facts, section=section)


def _rendered(template: str, facts: LogFacts, **values: Any) -> str:
    when = f"{figures.moment(facts.from_ms)} to {figures.moment(facts.to_ms)} UTC"
    page = _templates().get_template(template)
    return page.render(
        facts=facts, when=when, nothing=figures.NOTHING, version=__version__, **values
    )


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    made.filters |= {
        "amount": figures.amount,
        "commas": "{:,}".format,
        "moment": figures.moment,
        "ratio": figures.ratio,
        "span": figures.span,
    }
    return made


def _coloured(plotted: window_tables.Plotted, facts: LogFacts) -> list[str]:
    """The coloured brokers: the same on the whole page if there are enough colours, else those with the most demand here."""
    if len(facts.brokers) <= COLOURS:
        return list(facts.brokers)
    wanted = (plotted.wanted * plotted.seconds[:, None]).sum(axis=0)
    largest = np.argsort(-wanted, kind="stable")[:COLOURS]
    return [plotted.brokers[index] for index in sorted(largest.tolist())]


def _groups_table(findings: Sequence[Finding], sections: Sequence[Section]) -> Table:
    """All groups; the name of one leads to its plots if there are any."""
    from markupsafe import Markup

    links = {section.anchor: section.file or f"#{section.anchor}" for section in sections}
    linked = Markup('<a href="{}">{}</a>')
    rows = [
        (
            [
                linked.format(links[anchor], one["group"]) if anchor in links else one["group"],
                one["kind"],
                one["dimension"],
            ],
            one,
        )
        for one in findings
        for anchor in (_anchor(one),)
    ]
    return Table.of(NAMES, wording.GROUPS, rows)


def _tenants(tenants: Sequence[Finding]) -> Table:
    rows = [
        ([one["tenant"], one["kind"], one["dimension"], wording.groups_of(one)], one)
        for one in tenants
    ]
    heads = ("tenant", *NAMES[1:], "groups")
    return Table.of(heads, wording.TENANTS, rows, f"{len(rows)} more tenants")


def _absences(facts: LogFacts) -> Table:
    """Clocks that were off, silences and kills, in the order of time."""
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
    cells = [
        (broker, what, figures.moment(from_ms), figures.moment(to_ms))
        for from_ms, to_ms, broker, what in sorted(rows)
    ]
    return Table(("broker", "what", "from (UTC)", "to (UTC)"), cells, 2)


def _anchor(finding: Finding) -> str:
    """An identifier for a section; groups' names may hold what identifiers may not."""
    group = "".join(
        letter if letter.isascii() and letter.isalnum() else f"-{ord(letter):x}-"
        for letter in finding["group"]
    )
    return f"{group}-{finding['kind']}-{finding['dimension']}"
