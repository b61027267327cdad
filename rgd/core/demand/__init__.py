"""Demand: what a group's callers were granted and what they wanted (docs/architecture.md, "Demand").

`counters` is what requests add to; `table` has a row for each group in use, whose slots (`slots`) a tick
closes and whose window a round's end; `unsaid` limits what callers count for who do not say whether they
retry; `estimator` makes of it what is advertised.
"""
