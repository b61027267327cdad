"""Stock Pulsar brokers beside rgd daemons: what they report, and what rgd reports to them.

A stock broker knows nothing of rgd. It limits itself to `quota * own / sum of all reports`, so
rgd leads it to its part with the usage that rgd reports (docs/stock-brokers.md, decision 39).
`messages` has the values, `names` the names on their topic, `members` what each of them uses, and
`steering` the rules that lead them. It imports neither `rgd.core.broker` nor anything of the outside.
"""
