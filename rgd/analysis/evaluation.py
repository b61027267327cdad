"""An executor's work on pieces that stand together by group and kind: join, judge, summarise.

Law: the windows of a group cross the network once, and memory is bounded by the largest group and
the pieces of a bucket (`packets`), or `EVALUATED_PIECES` if that is more. The result is the windows, and the findings
about each dimension. Groups are joined, judged and written together, because a call costs as much as some hundred windows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rgd.analysis.fairness import Fairness, fairness_of, parts_of
from rgd.analysis.findings import Finding, summarise, what_if_of
from rgd.analysis.replay import replay
from rgd.analysis.row_columns import DIMENSIONS
from rgd.analysis.scenarios import AS_LOGGED, Scenario
from rgd.analysis.window_tables import write
from rgd.analysis.windows import GroupWindows, Joined, join, sliced

#: Pieces that are judged together, if no group has more.
EVALUATED_PIECES: Final = 20_000
#: As many are replayed together: a window of all of them costs little more than of one group.
REPLAYED_PIECES: Final = 200_000
#: Brokers in windows that are replayed at once, if no group has more: some 270 bytes each.
REPLAYED_ROWS_MAX: Final = 500_000


@dataclass(frozen=True, slots=True)
class Judged:
    """Groups of the same brokers, judged."""

    joined: Joined
    #: Of each dimension, of all groups.
    fairness: dict[str, Fairness]
    #: Of each group the findings about the dimensions that it uses.
    findings: list[dict[str, Finding]]


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Judges whole groups; lengths in ms."""

    window_ms: int
    round_ms: float
    #: What else is asked, after `AS_LOGGED`.
    scenarios: Sequence[Scenario] = ()

    def of_pieces(self, pieces: Any) -> tuple[list[Any], list[Finding]]:
        """Windows, some `pyarrow.Table`s of `schema.WINDOWS`, and findings.

        Args:
            pieces: a table of `schema.PIECES`, of whole groups by group and kind.
        """
        judged = list(self.judged(join(pieces, self.window_ms)))
        groups = [windows for one in judged for windows in one.joined.groups]
        findings = [found for one in judged for found in one.findings]
        lengths = self.window_ms, self.round_ms
        for scenario in (AS_LOGGED, *self.scenarios) if self.scenarios else ():
            for some in _together(groups, scenario):
                replayed = map(Joined.alone, replay(groups[some], scenario, *lengths))
                for found, other in zip(findings[some], self.judged(replayed), strict=True):
                    for of, finding in found.items():
                        entry = what_if_of(scenario.text, finding, other.findings[0][of])
                        finding["what_if"].append(entry)
        tables = [table for one in judged for table in _written(one)]
        return tables, [one for found in findings for one in found.values()]

    def judged(self, groups: Iterable[Joined]) -> Iterator[Judged]:
        """The groups with what is found about them."""
        groups, lengths = list(groups), (self.window_ms, self.round_ms)
        for joined, parts in zip(groups, parts_of([one.windows for one in groups]), strict=True):
            fairness = {of: fairness_of(joined.windows, of, parts) for of in DIMENSIONS}
            findings = [
                {
                    of: summarise(windows, of, sliced(fairness[of], rows), *lengths)
                    for of in DIMENSIONS
                    if windows.rates[of].is_used
                }
                for windows, rows in zip(joined.groups, joined.rows, strict=True)
            ]
            yield Judged(joined, fairness, findings)


def _together(groups: Sequence[GroupWindows], scenario: Scenario) -> Iterator[slice]:
    """Which groups are replayed together: a scenario may have many more brokers than the log."""
    first = longest = brokers = 0
    for place, windows in enumerate(groups):
        longest = max(longest, len(windows.start_ms))
        more = scenario.brokers or len(windows.brokers)
        brokers += more
        if place > first and longest * brokers > REPLAYED_ROWS_MAX:
            yield slice(first, place)
            first, longest, brokers = place, len(windows.start_ms), more
    yield slice(first, len(groups))


def _written(judged: Judged) -> Iterator[Any]:
    """Tables of the dimensions that groups use."""
    import pyarrow as pa

    for of in DIMENSIONS:
        is_used = [of in found for found in judged.findings]
        if any(is_used):
            table = write(judged.joined, of, judged.fairness[of])
            of_rows = np.repeat(is_used, [len(one.start_ms) for one in judged.joined.groups])
            yield table if all(is_used) else table.filter(pa.array(of_rows))
