"""Backlogs of topics and their quotas (PIP-323): what was reported, the check, its consequences.

`model` has the report of one topic, from whichever source. `estimate` computes from it: the oldest
unacknowledged message, size, age, and how far an eviction must skip. `quota` has the quota in force
and what exceeding it causes. `topic` is one topic between two checks, `store` all topics and the check.

Sources outside the core: the HTTP interface (pushed) and the poller of a stock Pulsar (polled).
"""
