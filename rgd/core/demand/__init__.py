"""Demand: what a group's callers were granted and wanted (docs/architecture.md, "Demand").

What requests add to comes in pages (`rgd.core.counts`). `table` has a row for each group in use; a tick closes the rows' slots
(`slots`), and the end of a round closes their windows. `bound` bounds refused work of callers that
give no attempt, and `credit` learns which part of it was new. `estimator` computes the advertised
demand from this.
"""
