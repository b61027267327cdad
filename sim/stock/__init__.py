"""Stock Pulsar brokers beside rgd daemons in the simulator (docs/stock-brokers.md).

`broker` models what a stock broker ships, as measured; `topic` carries their reports; `scenarios`
has what happens, `run` lets it happen and compares with max-min of the whole. The command is
`python -m sim.stock`.
"""
