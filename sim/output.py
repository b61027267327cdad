"""What a run writes into `--out DIR`: rounds, figures, and plots where they can be made.

    rounds.csv          a row for each round, group and broker: messages (`sim.table` names the columns)
    rounds-bytes.csv    the same for bytes, where there is a quota of bytes
    rounds.json         a row for each round: sums, and the lowest admitted / part
    messages.svg        the first group drawn (bytes.svg likewise), where matplotlib is installed
    summary.json        the last line of the command, what was asked of the run, and broken laws

Law: a number in here was counted at the load or seen at a boundary (`sim.recording`).
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from sim.plots import draw_run
from sim.recording import Recording
from sim.run import Outcome
from sim.table import RoundTable

_DIMENSIONS = ("messages", "bytes")


def write_rounds(recording: Recording, folder: Path) -> list[Path]:
    """Write the tables; where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for dimension in recording.limited:
        suffix = "" if dimension == 0 else f"-{_DIMENSIONS[dimension]}"
        path = folder / f"rounds{suffix}.csv"
        table_of(recording, dimension).write(path)
        written.append(path)
    (folder / "rounds.json").write_text(json.dumps(_rounds(recording), indent=1) + "\n")
    return written


def draw_rounds(outcome: Outcome, folder: Path) -> None:
    """Draw the first group: wanted, admitted and share by broker, and the lowest ratio."""
    recording, scenario = outcome.recording, outcome.scenario
    steps = [moment / recording.round_ns for moment in outcome.cluster.steps]
    for dimension in recording.limited:
        unit = _DIMENSIONS[dimension]
        draw_run(
            table_of(recording, dimension),
            folder / f"{unit}.svg",
            title=f"{scenario.name}, {outcome.policy}, seed {outcome.seed}: {unit}",
            steps=steps,
        )


def write_summary(outcome: Outcome, folder: Path) -> None:
    """Write the figures, what was asked of them, and every law that was broken."""
    summary = {
        **outcome.line(),
        "targets": [
            {"figure": one.figure, "asked": one.asked, "met": one.is_met}
            for one in outcome.verdicts
        ],
        "violations": [str(violation) for violation in outcome.violations],
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")


def table_of(recording: Recording, dimension: int) -> RoundTable:
    """One dimension of a recording as a table, without who was down; the warm-up is in it."""
    rounds, groups, brokers = recording.wanted.shape[:3]
    number, group, place = (
        axis.ravel() for axis in np.indices((rounds, groups, brokers), dtype=np.int64)
    )
    due = recording.due[..., dimension].ravel() / recording.round_s
    is_up = recording.is_up[number, place] & ~np.isnan(due)
    shares = recording.shares[:-1, ..., dimension].ravel()
    return RoundTable(
        round=number[is_up],
        group=np.array(recording.groups)[group[is_up]],
        broker=np.array(recording.brokers)[place[is_up]],
        wanted=recording.wanted[..., dimension].ravel()[is_up] / recording.round_s,
        admitted=recording.admitted[..., dimension].ravel()[is_up] / recording.round_s,
        share=shares[is_up],
        part=due[is_up],
    )


def _rounds(recording: Recording) -> list[dict[str, Any]]:
    rows = []
    for number in range(recording.rounds):
        row: dict[str, Any] = {"round": number, "warmup": number < recording.warmup}
        for dimension in recording.limited:
            due = recording.due[number, ..., dimension]
            admitted = recording.admitted[number, ..., dimension]
            counts = due >= 1
            ratio = float((admitted[counts] / due[counts]).min()) if counts.any() else None
            row[_DIMENSIONS[dimension]] = {
                "wanted": int(recording.wanted[number, ..., dimension].sum()),
                "admitted": int(admitted.sum()),
                "shares": float(np.nansum(recording.shares[number, ..., dimension])),
                "lowest_ratio": ratio,
            }
        rows.append(row)
    return rows
