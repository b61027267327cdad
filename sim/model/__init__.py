"""A vectorised model for big sweeps: 100 daemons x 100,000 groups on a laptop.

Law: the daemons are `rgd.core.fluid`, where load is rates instead of requests (`workload`), and the exchange
loses nothing. A property test holds shares equal to those of the event-driven core, round by round.

`sweep` runs chunks of groups that fit the processor's cache, `tally` adds up
what the contract asks for, `python -m sim.model` is the command.
"""
