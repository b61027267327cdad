"""The demo: a real cluster on one machine, real load over HTTP, and a verdict.

`plan` says what happens, `load` asks as a broker would,
`cluster` runs the daemons, `verdict` judges by what the load itself counted,
and `run` plays the plan. Showing it is `rgd.cli`'s business.
"""
