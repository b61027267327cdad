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

import numpy as np

from rgd.analysis import tables
from rgd.analysis.fairness import Fairness, fairness_of, parts_of
from rgd.analysis.findings import summarise, what_if_of
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
    batches: Iterable[Any],
    window_ms: int,
    round_ms: float,
    *,
    scenarios: Sequence[Scenario] = (),
    pieces_max: int | None = None,
) -> Iterator[Any]:
    """Turn `pyarrow.RecordBatch`es of `schema.PIECES` into those of `schema.EVALUATED`.

    Args:
        batches: sorted by group and kind.
        window_ms: length of a window.
        round_ms: length of a round.
        scenarios: what else is asked, after `AS_LOGGED`.
        pieces_max: pieces that are held before they are judged, and those of the last one's group.
    """
    most = pieces_max or (REPLAYED_PIECES if scenarios else EVALUATED_PIECES)
    evaluator = Evaluator(window_ms, round_ms, (AS_LOGGED, *scenarios) if scenarios else ())
    for pieces in _whole_groups(batches, most):
        yield from evaluator.of_pieces(pieces).to_batches()


def _whole_groups(batches: Iterable[Any], pieces_max: int) -> Iterator[Any]:
    """Tables of about `pieces_max` pieces, each of whole groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    held: list[Any] = []
    for batch in batches:
        held.append(pa.table(batch))
        if sum(map(len, held)) < pieces_max:
            continue
        pieces = pa.concat_tables(held)
        is_last = [pc.equal(pieces[key], pieces[key][-1]) for key in ("group", "kind")]
        whole = len(pieces) - (pc.sum(pc.and_(*is_last)).as_py() or 0)
        if whole:
            yield pieces[:whole].combine_chunks()
        held = [pieces[whole:]]
    if held:
        yield pa.concat_tables(held).combine_chunks()


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

        is_said = pc.is_valid(pieces["stats"])
        made = [_passed_on(pieces.filter(is_said))]
        pieces = pieces.filter(pc.invert(is_said)).combine_chunks()
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
                table = tables.write(windows, of, known)
                made.append(_with_findings(table, [json.dumps(finding, allow_nan=False)]))
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
    if not len(pieces):
        return
    is_first = np.ones(len(pieces), bool)
    codes = [
        pieces[key].combine_chunks().dictionary_encode().indices.to_numpy()
        for key in ("group", "kind")
    ]
    is_first[1:] = np.any([code[1:] != code[:-1] for code in codes], axis=0)
    starts = [*np.flatnonzero(is_first).tolist(), len(pieces)]
    for start, end in pairwise(starts):
        yield pieces[start:end].combine_chunks()


def _with_findings(table: Any, findings: list[str]) -> Any:
    import pyarrow as pa

    column = [*findings, *[None] * (len(table) - len(findings))]
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
