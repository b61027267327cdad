"""An executor's work on pieces that stand together by group and kind: join, judge, summarise.

Law: the windows of a group cross the network once, and memory is bounded by the largest group and
the pieces of a bucket (`packets`), or `EVALUATED_PIECES` if that is more. The result is the windows, with the findings
about each dimension on that dimension's first row. Groups are shared out together, because a call costs as much as
some hundred windows.

The stats of the segments, which have no group, pass through. What the policies attach to a group passes
once, however many segments repeat it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from rgd.analysis import tables
from rgd.analysis.chunks import numbered
from rgd.analysis.fairness import Fairness, fairness_of, parts_of
from rgd.analysis.findings import summarise, what_if_of
from rgd.analysis.pieces import starts_of
from rgd.analysis.replay import replay
from rgd.analysis.scenarios import AS_LOGGED, Scenario
from rgd.analysis.schema import EVALUATED, WINDOWS, arrow
from rgd.analysis.windows import GroupWindows, join

#: Pieces that are judged together, if no group has more.
EVALUATED_PIECES: Final = 20_000
#: As many are replayed together: a window of all of them costs little more than of one group.
REPLAYED_PIECES: Final = 200_000
#: Brokers in windows that are replayed at once, if no group has more: some 270 bytes each.
REPLAYED_ROWS_MAX: Final = 500_000


def evaluate(
    groups: Iterable[Any], window_ms: int, round_ms: float, *, scenarios: Sequence[Scenario] = ()
) -> Iterator[Any]:
    """Turn pieces into `pyarrow.RecordBatch`es of `schema.EVALUATED`.

    Args:
        groups: tables of `schema.PIECES`, each of whole groups by group and kind.
        window_ms: length of a window.
        round_ms: length of a round.
        scenarios: what else is asked, after `AS_LOGGED`.
    """
    evaluator = Evaluator(window_ms, round_ms, (AS_LOGGED, *scenarios) if scenarios else ())
    for pieces in groups:
        yield from evaluator.of_pieces(pieces).to_batches()


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Judges whole groups; lengths in ms."""

    window_ms: int
    round_ms: float
    scenarios: Sequence[Scenario]

    def of_pieces(self, pieces: Any) -> Any:
        """A `pyarrow.Table` of `schema.EVALUATED` of some groups' pieces."""
        import pyarrow as pa
        import pyarrow.compute as pc

        made = [arrow(EVALUATED).empty_table()]
        if pieces["stats"].null_count < len(pieces):
            is_piece = pc.is_null(pieces["stats"])
            made = [_passed_on(pieces.filter(pc.invert(is_piece)))]
            pieces = pieces.filter(is_piece)
        groups = [join(one, self.window_ms) for one in _groups(pieces)]
        findings = list(self.findings(groups))
        for scenario in self.scenarios:
            for some in _together(groups, scenario):
                replayed = self.replayed(groups[some], scenario)
                for found, other in zip(findings[some], self.findings(replayed), strict=True):
                    for of, (finding, _) in found.items():
                        finding["what_if"].append(what_if_of(scenario.text, finding, other[of][0]))
        for windows, found in zip(groups, findings, strict=True):
            for of, (finding, known) in found.items():
                made.append(_with_finding(tables.write(windows, of, known), finding))
        return pa.concat_tables(made)

    def replayed(
        self, groups: Sequence[GroupWindows], scenario: Scenario
    ) -> Sequence[GroupWindows]:
        """The windows that the scenario would have had."""
        return replay(groups, scenario, window_ms=self.window_ms, round_ms=self.round_ms)

    def findings(
        self, groups: Sequence[GroupWindows]
    ) -> Iterator[dict[str, tuple[dict[str, Any], Fairness]]]:
        """The findings about each group's dimensions that are used."""
        for windows, parts in zip(groups, parts_of(groups), strict=True):
            found = {}
            for of, rates in windows.rates.items():
                if rates.is_used:
                    known = fairness_of(windows, of, parts)
                    finding = summarise(
                        windows, of, known, window_ms=self.window_ms, round_ms=self.round_ms
                    )
                    found[of] = (finding, known)
            yield found


def _together(groups: Sequence[GroupWindows], scenario: Scenario) -> Iterator[slice]:
    """Which groups are replayed together: a scenario may have many more brokers than the log."""
    first = rows = 0
    for place, windows in enumerate(groups):
        more = len(windows.start_ms) * (scenario.brokers or len(windows.brokers))
        if rows and rows + more > REPLAYED_ROWS_MAX:
            yield slice(first, place)
            first, rows = place, 0
        rows += more
    yield slice(first, len(groups))


def _groups(pieces: Any) -> Iterator[Any]:
    """The pieces of each group and kind."""
    codes = [numbered(pieces[key])[1] for key in ("group", "kind")]
    starts = [*starts_of(*codes).tolist(), len(pieces)]
    for start, end in pairwise(starts):
        yield pieces[start:end]


def _with_finding(table: Any, finding: dict[str, Any]) -> Any:
    import pyarrow as pa

    column = [json.dumps(finding, allow_nan=False), *[None] * (len(table) - 1)]
    return table.append_column(arrow(EVALUATED).field("findings"), pa.array(column, pa.string()))


def _passed_on(pieces: Any) -> Any:
    """Stats as they are, equal ones too; of the attachments each once, with the group's name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    said = pieces.select(["group", "stats"])
    is_of_group = pc.is_valid(said["group"])
    once = said.filter(is_of_group).group_by(["group", "stats"]).aggregate([])
    said = pa.concat_tables([said.filter(pc.invert(is_of_group)), once])
    blank = {name: pa.nulls(len(said), arrow(WINDOWS).field(name).type) for name in WINDOWS}
    columns = blank | {"group": said["group"], "findings": said["stats"]}
    return pa.table(columns, schema=arrow(EVALUATED))
