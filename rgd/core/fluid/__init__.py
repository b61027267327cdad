"""A cluster as rates: what daemons would admit and agree if load were an even flow.

Law: the rules are the core's own. What is modelled is what the daemons do with requests and messages:
load is a rate (`buckets`), demand is estimated from whole rounds (`demand`), and every report is there before
the next round (`cluster`). `python -m sim.model` sweeps over it, and `rgd report --what-if` replays logs on it.
"""
