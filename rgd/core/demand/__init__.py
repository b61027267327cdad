"""Demand: what a group's callers were granted and what they wanted.

`meter` counts while requests pass, is measured for early reports and drained once a round; `bound`
and `credit` limit what callers count for who do not say whether they retry; `noise` is how much
slots differ by chance; `estimator` makes of it what is told.
"""
